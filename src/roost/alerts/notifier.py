"""The notifier: takes alerts without ever blocking and sends them, one lane for each webhook.

    tell ──► lane of each webhook ──► receiver        a slow receiver holds up its own lane only

Logs name the kind and the host of a webhook, never its URL, and of an error only its class: the texts of
aiohttp's errors repeat URLs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import aiohttp

from roost.alerts.claims import Claims, NoClaims
from roost.alerts.lane import Counts, Lane
from roost.alerts.options import SendOptions
from roost.alerts.pace import Repeats
from roost.alerts.payloads import Alert
from roost.alerts.webhooks import Webhook
from roost.core.loops import Loops
from roost.version import __version__

log = logging.getLogger("roost.alerts")


class Notifier:
    """Sends what it is told to every webhook. Without webhooks it does nothing.

    `counts` are by kind of webhook: requests that were accepted, requests given up, alerts that found the
    queue full or were left at the stop, alerts that another process of the fleet told.
    """

    def __init__(
        self,
        webhooks: Sequence[Webhook],
        options: SendOptions | None = None,
        loops: Loops | None = None,
        claims: Claims | None = None,
    ) -> None:
        self._options = options or SendOptions()
        self._loops = loops or Loops(self._options.clock)
        self._repeats = Repeats()
        self.counts = Counts()
        self._lanes = [
            Lane(webhook, self._options, self.counts, claims or NoClaims()) for webhook in webhooks
        ]

    def tell(self, alert: Alert) -> None:
        """Queue it for every webhook. Never blocks, never raises; call it in the thread of the loop."""
        try:
            if self._lanes and self._repeats.is_news(alert, self._options.clock.monotonic()):
                for lane in self._lanes:
                    lane.put(alert)
        except Exception:  # the caller has more important things to do
            log.exception("alert not taken")

    async def run(self) -> None:
        """Send for ever. When cancelled, spend at most `flush_s` on what is queued; it is not run again."""
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._options.timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"roost/{__version__}", "Content-Type": "application/json"},
        ) as session:
            tasks = [asyncio.create_task(lane.run(session, self._loops)) for lane in self._lanes]
            try:
                await asyncio.Event().wait()
            finally:
                await self._finish(tasks)

    async def _finish(self, tasks: list[asyncio.Task[None]]) -> None:
        for lane in self._lanes:
            lane.close()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=self._options.flush_s)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for lane in self._lanes:
                lane.count_what_is_left()
