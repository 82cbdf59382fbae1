"""The page on which players wait: one file, no asset of anybody else's, and nothing in it that is secret.

It is made once for each language. A language is a file beside the page (`queue.ko.json`); one more file
with the same names in it is one more language.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files

from aiohttp import web

from roost.core.errors import UnknownWorld
from roost.gateway.context import Gateway
from roost.web.route import Header, Request, Route

PAGES = files("roost.gateway") / "pages"
DEFAULT = "en"
COOKIE = "roost_lang"
"""Which language they chose; set by the page."""

_PAGE = (PAGES / "queue.html").read_text(encoding="utf-8")


def _texts() -> dict[str, dict[str, str]]:
    """Language → name → text."""
    found = (file for file in PAGES.iterdir() if re.fullmatch(r"queue\.[a-z]{2}\.json", file.name))
    return {file.name.split(".")[1]: json.loads(file.read_text(encoding="utf-8")) for file in found}


TEXTS = _texts()


def _script_hash() -> str:
    """The one inline script of the page, as a content security policy names it."""
    inner = re.search("<script>(.*?)</script>", _PAGE, re.DOTALL)
    assert inner is not None
    return "'sha256-" + base64.b64encode(hashlib.sha256(inner.group(1).encode()).digest()).decode() + "'"


_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_script_hash()}; style-src 'unsafe-inline'; "
        "connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Language, Cookie",
    "X-Content-Type-Options": "nosniff",
}


def chosen_language(cookie: str, accepted: str) -> str:
    """What they chose on the page, else what their browser asks for most, else English."""
    if cookie in TEXTS:
        return cookie
    wanted = (_weighed(part) for part in accepted[:500].split(","))
    best = max((one for one in wanted if one[1] in TEXTS), key=lambda one: one[0], default=(0.0, DEFAULT))
    return best[1] if best[0] > 0 else DEFAULT


def _weighed(part: str) -> tuple[float, str]:
    """`ko-KR;q=0.9` → (0.9, "ko")."""
    tag, _, q = part.partition(";")
    weight = re.fullmatch(r"\s*q=([01](?:\.\d{0,3})?)\s*", q) if q else None
    return (float(weight[1]) if weight else 0.0 if q else 1.0), tag.strip().lower().partition("-")[0]


def page_in(lang: str, hold_s: int) -> str:
    """The whole page but for the name of the world."""
    texts = TEXTS[lang]
    minutes = texts["minutes"].replace("{n}", str(max(1, hold_s // 60)))
    filled = {name: html.escape(text.replace("{hold}", minutes)) for name, text in texts.items()}
    filled["lang"], filled["seconds"] = lang, str(hold_s)
    filled["texts"] = json.dumps(TEXTS, ensure_ascii=False).replace("<", "\\u003c")
    filled["languages"] = " ".join(
        f'<button type="button" lang="{other}" data-lang="{other}"{" aria-current" if other == lang else ""}>'
        f"{html.escape(TEXTS[other]['language'])}</button>"
        for other in sorted(TEXTS)
    )
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled.get(found[1], found[0]), _PAGE)


class PlayerPageRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._worlds = gateway.platform.worlds
        hold_s = gateway.platform.settings.queue.gone_seconds
        self._pages = {lang: page_in(lang, int(hold_s)) for lang in TEXTS}

    async def get_queue_page(self, request: Request) -> web.Response:
        world = request.path["world"]
        self._worlds.of(world)
        asked = request.http.headers.get("Accept-Language", "")
        lang = chosen_language(request.http.cookies.get(COOKIE, ""), asked)
        text = self._pages[lang].replace("{{world}}", html.escape(world))
        headers = {**_HEADERS, "Content-Language": lang}
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=headers)


def routes(gateway: Gateway) -> list[Route]:
    return [
        Route(
            "GET",
            "/queue/{world}",
            PlayerPageRoutes(gateway).get_queue_page,
            "The page on which players wait; who they are comes in the fragment",
            errors=(UnknownWorld,),
            touches_store=False,
            content_type="text/html",
            headers=(Header("Accept-Language", "The page comes in the first of these that it knows."),),
        )
    ]
