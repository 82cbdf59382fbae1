"""Who of the fleet tells an incident to a receiver: a claim in the store, for each webhook and each incident.

The claimer renews its claim while it tries, and settles it when the receiver has the alert. If it dies before
that, the claim runs out and the next process tells it: at least once, and twice only after a crash.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Protocol

from roost.alerts.payloads import Alert
from roost.alerts.webhooks import Webhook
from roost.store.keys.alerts import alert_keys
from roost.store.scripts import ScopedScript
from roost.store.store import Store


@dataclass(frozen=True, slots=True)
class Claimed:
    pass


@dataclass(frozen=True, slots=True)
class Held:
    left_ms: int


@dataclass(frozen=True, slots=True)
class Told:
    pass


@dataclass(frozen=True, slots=True)
class Settled:
    pass


@dataclass(frozen=True, slots=True)
class NotYours:
    pass


Answer = Claimed | Held | Told


class Claims(Protocol):
    async def claim(self, webhook: Webhook, alert: Alert, lease_s: float) -> Answer:
        """Take or renew the claim; `StoreError` where nobody can say."""

    async def settle(self, webhook: Webhook, alert: Alert, *, told: bool) -> None: ...


class NoClaims:
    """For a notifier that is alone: everything is its own."""

    async def claim(self, webhook: Webhook, alert: Alert, lease_s: float) -> Answer:
        return Claimed()

    async def settle(self, webhook: Webhook, alert: Alert, *, told: bool) -> None:
        pass


class StoreClaims:
    """Claims that all processes of one store share."""

    def __init__(self, store: Store) -> None:
        self.holder = secrets.token_hex(8)
        keys, script = alert_keys(store.keys), store.library.script
        self._claim: ScopedScript[Answer] = ScopedScript(script("alerts", "claim", Claimed, Held, Told), keys)
        self._settle: ScopedScript[Settled | NotYours] = ScopedScript(
            script("alerts", "settle", Settled, NotYours), keys
        )

    async def claim(self, webhook: Webhook, alert: Alert, lease_s: float) -> Answer:
        if alert.incident is None:  # only this process knows of it, or the store is what it is about
            return Claimed()
        return await self._claim(
            id=_id(webhook, alert),
            action=alert.meaning.action,
            life=alert.incident.life,
            at=alert.incident.at,
            holder=self.holder,
            lease_ms=int(lease_s * 1000),
        )

    async def settle(self, webhook: Webhook, alert: Alert, *, told: bool) -> None:
        if alert.incident is not None:
            await self._settle(id=_id(webhook, alert), holder=self.holder, told=int(told))


def _id(webhook: Webhook, alert: Alert) -> str:
    """Bounded whatever the subject is, and no secret: the URL of a webhook is one."""
    text = f"{webhook.kind}\n{webhook.url}\n{webhook.routing_key}\n{alert.dedup_key}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
