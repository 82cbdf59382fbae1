"""A real browser, driven over its debugging port: open a page, look at it, type into it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

from aiohttp import ClientSession, ClientWebSocketResponse

from roost.testing import free_port

BINARY = shutil.which("chromium") or shutil.which("google-chrome")


class Page:
    """One tab."""

    def __init__(self, line: ClientWebSocketResponse) -> None:
        self._line = line
        self._count = 0
        self.complaints: list[str] = []
        self.bytes_received = 0

    async def ask(self, method: str, **params: Any) -> Any:
        self._count += 1
        await self._line.send_json({"id": self._count, "method": method, "params": params})
        async with asyncio.timeout(20):
            while True:
                told = json.loads((await self._line.receive()).data)
                if told.get("method") == "Log.entryAdded":
                    entry = told["params"]["entry"]
                    self.complaints.append(" ".join(filter(None, (entry["text"], entry.get("url")))))
                elif told.get("method") == "Runtime.consoleAPICalled":
                    self._hear(told["params"])
                elif told.get("method") == "Network.dataReceived":
                    self.bytes_received += told["params"]["encodedDataLength"]
                elif told.get("method") == "Runtime.exceptionThrown":
                    self.complaints.append(str(told["params"]["exceptionDetails"]))
                elif told.get("id") == self._count:
                    return told["result"]

    def _hear(self, said: Any) -> None:
        """What the page itself wrote to the console."""
        if said["type"] in ("error", "assert"):
            words = (str(one.get("description") or one.get("value")) for one in said["args"])
            self.complaints.append(" ".join(words))

    async def open(self, url: str, *, languages: str = "", on_start: str = "") -> Self:
        """`languages` as a browser has them (`ko-KR,ko`); `on_start` runs before the page's script."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.ask(f"{domain}.enable")
        if languages:
            agent = await self.value("navigator.userAgent")
            await self.ask("Network.setUserAgentOverride", userAgent=agent, acceptLanguage=languages)
        if on_start:
            await self.ask("Page.addScriptToEvaluateOnNewDocument", source=on_start)
        await self.ask("Page.navigate", url=url)
        return self

    async def resize(self, width: int, height: int, *, is_phone: bool = False) -> None:
        scale = 2 if is_phone else 1
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": is_phone}
        await self.ask("Emulation.setDeviceMetricsOverride", **size)

    async def prefer(self, scheme: str) -> None:
        """`light` or `dark`, as the system of whoever looks has it."""
        wish = {"name": "prefers-color-scheme", "value": scheme}
        await self.ask("Emulation.setEmulatedMedia", features=[wish])

    async def go(self, url: str) -> None:
        await self.ask("Page.navigate", url=url)

    async def reload(self) -> None:
        await self.ask("Page.reload")

    async def cookies(self, url: str) -> list[Any]:
        """What the browser would send there, those that no script can read among them."""
        found: list[Any] = (await self.ask("Network.getCookies", urls=[url]))["cookies"]
        return found

    async def screenshot(self, path: Path) -> None:
        shot = await self.ask("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    async def value(self, script: str) -> Any:
        found = await self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        return found["result"].get("value")

    async def text(self) -> str:
        """What a person can read."""
        return str(await self.value("document.body ? document.body.innerText : ''"))


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Page]:
    assert BINARY is not None
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=480,800"]
        command = [
            BINARY,
            *flags,
            f"--remote-debugging-port={port}",
            f"--user-data-dir={Path(folder)}",
            "about:blank",
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            async with ClientSession() as session:
                address = await _debugger(session, port)
                async with session.ws_connect(address, max_msg_size=0) as line:
                    yield Page(line)
        finally:
            process.kill()
            process.wait()


async def _debugger(session: ClientSession, port: int) -> str:
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(OSError):
                async with session.get(f"http://127.0.0.1:{port}/json") as response:
                    for tab in await response.json():
                        if tab["type"] == "page":
                            return str(tab["webSocketDebuggerUrl"])
            await asyncio.sleep(0.1)
