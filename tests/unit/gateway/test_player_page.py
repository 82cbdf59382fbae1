"""The player page without a browser: which language, and whether every language says everything."""

from __future__ import annotations

import re

import pytest

from roost.gateway.routes.player_page import TEXTS, chosen_language, page_in

PLACEHOLDER = re.compile(r"\{(\w+)\}")


@pytest.mark.parametrize(
    ("cookie", "accepted", "lang"),
    [
        ("", "", "en"),
        ("", "ko-KR,ko;q=0.9,en-US;q=0.8", "ko"),
        ("", "de-DE,de;q=0.9,ko;q=0.5,en;q=0.3", "ko"),
        ("", "en-GB,ko;q=0.9", "en"),
        ("", "ko;q=0", "en"),
        ("", "ko;q=nonsense, fr", "en"),
        ("", "*", "en"),
        ("ko", "en", "ko"),
        ("xx", "ko", "ko"),
    ],
)
def test_the_language_is_the_chosen_one_else_the_browsers(cookie: str, accepted: str, lang: str) -> None:
    assert chosen_language(cookie, accepted) == lang


@pytest.mark.parametrize("lang", sorted(TEXTS))
def test_a_language_has_every_text_with_the_same_blanks_to_fill(lang: str) -> None:
    assert TEXTS[lang].keys() == TEXTS["en"].keys()
    for name, text in TEXTS[lang].items():
        assert text.strip(), name
        assert set(PLACEHOLDER.findall(text)) == set(PLACEHOLDER.findall(TEXTS["en"][name])), name


@pytest.mark.parametrize("lang", sorted(TEXTS))
def test_the_page_is_whole_before_any_script_runs(lang: str) -> None:
    page = page_in(lang, 300)
    assert re.findall(r"\{\{(\w+)\}\}", page) == ["world"]
    assert f'<html lang="{lang}"' in page
    markup = page.partition("<script")[0]
    assert PLACEHOLDER.findall(markup.partition("</style>")[2].replace("{{world}}", "")) == []


def test_every_text_that_the_page_asks_for_exists() -> None:
    page = page_in("en", 300)
    asked = set(re.findall(r'data-(?:t|placeholder|label)="(\w+)"', page)) | set(
        re.findall(r"\bt\('(\w+)'", page)
    )
    assert asked
    assert asked <= TEXTS["en"].keys()
