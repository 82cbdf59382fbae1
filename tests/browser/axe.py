"""axe-core in a page: what it finds that is serious or worse."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser.console import Console

INSTALL_S = 90
_CHECK = """axe.run(document, {resultTypes: ['violations']}).then(found => found.violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 160)).slice(0, 3).join(' | ')}`))"""


def install(folder: Path) -> str:
    """The source of axe-core, installed outside the repository."""
    if shutil.which("npm") is None:
        pytest.skip("no npm here, which installs axe-core")
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "axe-core@4"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not install axe-core in time")
    if done.returncode:
        pytest.skip(f"npm cannot install axe-core: {done.stderr[-200:]}")
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


async def findings(console: Console, axe: str) -> list[str]:
    """Of the page as it is now."""
    if not await console.page.value("'axe' in window"):
        await console.page.value(axe + ";true")
    found: list[str] = await console.page.value(_CHECK)
    return found
