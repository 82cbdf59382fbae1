"""The console in a browser, as somebody uses it: by what is written on things."""

from __future__ import annotations

import json

from roost.testing import eventually
from tests.browser.chromium import Page

PATIENCE_S = 20.0
PHONE = (390, 844)
_CUT_OFF = """[...document.querySelectorAll('.tabled')].filter(one => one.checkVisibility()).filter(one => {
  const shown = [...one.querySelectorAll('th')].filter(head => head.checkVisibility());
  return shown.length && shown.at(-1).getBoundingClientRect().right > one.getBoundingClientRect().right + 1;
}).map(one => one.getAttribute('aria-label'))"""

_BUTTON = """(() => {
  const root = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document;
  const seen = [...root.querySelectorAll('button, a.button')].filter(one => one.checkVisibility());
  return seen.find(one => one.textContent.trim() === %s);
})()"""


class Console:
    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url

    async def open(self, path: str = "overview") -> None:
        await self.page.open(f"{self.url}/#/{path}")
        await self.is_live()

    async def go(self, path: str) -> None:
        await self.page.value(f"location.hash = {json.dumps('#/' + path)}")

    async def is_live(self) -> None:
        await self.sees("document.querySelector('.pulse[data-state=connected]')", "the console to be live")

    async def sees(self, script: str, what: str = "") -> None:
        """Until the script finds something."""

        async def is_there() -> bool:
            return bool(await self.page.value(f"!!({script})"))

        await eventually(is_there, what or script, PATIENCE_S)

    async def shows(self, *parts: str) -> None:
        seen = ""

        async def is_shown() -> bool:
            nonlocal seen
            seen = await self.page.text()
            return all(part in seen for part in parts)

        await eventually(is_shown, f"the page to show {parts}", PATIENCE_S, lambda: seen)

    async def press(self, label: str) -> None:
        """A button by what is written on it; in a question, one of its own."""
        button = _BUTTON % json.dumps(label)
        await self.sees(f"(one => one && !one.disabled)({button})", f"a button {label!r}")
        await self.page.value(f"{button}.click()")

    async def click(self, element: str) -> None:
        """What the script names, once it is there."""
        await self.sees(element)
        await self.page.value(f"{element}.click()")

    async def has(self, label: str) -> bool:
        return bool(await self.page.value(f"!!({_BUTTON % json.dumps(label)})"))

    async def fill(self, selector: str, value: str) -> None:
        field = f"document.querySelector({json.dumps(selector)})"
        await self.sees(field)
        await self.page.value(
            f"(field => {{ field.focus(); field.value = {json.dumps(value)};"
            f" field.dispatchEvent(new Event('input', {{bubbles: true}}));"
            f" field.dispatchEvent(new Event('change', {{bubbles: true}})); }})({field})"
        )

    async def count(self, selector: str) -> int:
        return int(await self.page.value(f"document.querySelectorAll({json.dumps(selector)}).length"))

    async def log_in(self, token: str) -> None:
        """As somebody else."""
        await self.press("Log out")
        await self.fill("#token", token)
        await self.press("Log in")
        await self.is_live()

    async def cut_off(self) -> list[str]:
        """Tables whose last column is not wholly inside them."""
        found: list[str] = await self.page.value(_CUT_OFF)
        return found

    async def provoked(self, *parts: str) -> None:
        """A test made the browser complain on purpose: about this, once. The complaint is taken out."""

        def found() -> list[str]:
            return [one for one in self.page.complaints if all(part in one for part in parts)]

        async def is_there() -> bool:
            await self.page.value("true")  # the browser tells what it has to say before its answer
            return bool(found())

        await eventually(is_there, f"the browser to complain of {parts}", PATIENCE_S)
        self.page.complaints.remove(found()[0])

    def complaints(self) -> list[str]:
        """What the browser found wrong."""
        return self.page.complaints
