"""The console without a browser: what is served, in which languages, and that nothing foreign is in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.gateway.live import attention
from roost.gateway.routes.console import POLICY, languages, read_files
from roost.gateway.routes.player_page import PAGES

FILES = read_files()
MODULES = {path: file.body.decode() for path, file in FILES.items() if path.endswith(".js")}
TEXTS = {lang: json.loads(FILES[f"lang/{lang}.json"].body) for lang in languages(FILES)}
PLACEHOLDER = re.compile(r"\{(\w+)\}")
FROM_THE_GATEWAY = ("event.", "said.", "errorCode.")
"""The gateway says it in English already; `test_console_languages.py` holds the other languages."""


def test_only_files_of_known_kinds_are_served_and_none_from_outside() -> None:
    assert {
        "index.html",
        "main.js",
        "tokens.css",
        "icon.svg",
        "pages/servers.js",
        "lang/ko.json",
    } <= FILES.keys()
    assert all(".." not in path and not path.startswith("/") for path in FILES)


@pytest.mark.parametrize("lang", sorted(TEXTS))
def test_a_language_has_every_text_with_the_same_blanks_to_fill(lang: str) -> None:
    own = {name for name in TEXTS[lang] if not name.startswith(FROM_THE_GATEWAY)}
    assert own == {name for name in TEXTS["en"] if not name.startswith(FROM_THE_GATEWAY)}
    for name in own:
        text = TEXTS[lang][name]
        assert text.strip(), name
        assert set(PLACEHOLDER.findall(text)) <= set(PLACEHOLDER.findall(TEXTS["en"][name])), name


@pytest.mark.parametrize("lang", sorted(TEXTS))
def test_a_language_has_a_sentence_for_everything_that_may_need_a_person(lang: str) -> None:
    source = Path(attention.__file__).read_text(encoding="utf-8")
    codes = set(re.findall(r'"([a-z]+(?:-[a-z]+)+|suspects)"[,)]', source))
    assert len(codes) == source.count("yield Attention(") == 11
    for code in codes:
        assert f"attention.{code}" in TEXTS[lang]
        assert f"attentionTodo.{code}" in TEXTS[lang]


def test_every_text_that_a_module_names_is_there() -> None:
    named = {name for text in MODULES.values() for name in re.findall(r"\bt\('([\w.-]+)'", text)}
    assert named - TEXTS["en"].keys() == set()


def test_every_text_is_named_by_a_module() -> None:
    whole = "\n".join(MODULES.values())
    prefixes = tuple(set(re.findall(r"(?:\bt|known_text)\(`([\w.-]+\.)\$\{", whole)))
    patterns = [re.escape(found).replace(r"\$\{\}", r"[\w-]+") for found in _templates(whole)]
    for name in TEXTS["en"]:
        is_named = f"'{name}'" in whole or any(re.fullmatch(pattern, name) for pattern in patterns)
        assert is_named or name.startswith(prefixes), f"nobody says {name}"


def _templates(whole: str) -> Iterator[str]:
    for found in re.findall(r"(?:\bt|known_text)\(`([^`]+)`", whole):
        yield re.sub(r"\$\{[^}]*\}", "${}", found)


@pytest.mark.parametrize("path", sorted(MODULES))
def test_a_module_makes_no_html_of_text_and_reaches_nobody_else(path: str) -> None:
    text = MODULES[path]
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert way not in text, way
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "setAttribute('style'" not in text


@pytest.mark.parametrize("path", sorted(MODULES))
def test_a_module_is_small_and_says_what_it_is(path: str) -> None:
    lines = MODULES[path].splitlines()
    assert lines[0].startswith("// ")
    assert len(lines) < 260


def test_no_inline_script_or_style_is_needed() -> None:
    page = FILES["index.html"].body.decode()
    assert "'unsafe" not in POLICY
    assert "<style" not in page
    assert " style=" not in page
    assert not re.findall(r"<script(?![^>]* src=)", page)
    for asset in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert asset.removeprefix("/console/") in FILES, asset


def test_what_modules_import_is_there() -> None:
    for path, text in MODULES.items():
        for wanted in re.findall(r"from '([^']+)'", text):
            folder = path.rpartition("/")[0]
            parts = [*(folder.split("/") if folder else []), *wanted.split("/")]
            while ".." in parts:
                at = parts.index("..")
                parts[at - 1 : at + 1] = []
            assert "/".join(part for part in parts if part != ".") in MODULES, f"{path} imports {wanted}"


COLOUR = re.compile(r"#[0-9a-f]{3,6}\b")


@pytest.mark.parametrize("page", ["docs.css", "queue.html"])
def test_the_player_page_and_the_docs_have_the_colours_of_the_console(page: str) -> None:
    known = set(COLOUR.findall(FILES["tokens.css"].body.decode()))
    text = (PAGES / page).read_text(encoding="utf-8")
    style = text.partition("</style>")[0]
    assert {colour for colour in COLOUR.findall(style) if colour != "#fff"} <= known
