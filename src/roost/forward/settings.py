"""The settings of `roost forward`: `ROOST_FORWARD__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.ids import check_name
from roost.core.setting import check_fields, checked, secret_faults, setting
from roost.forward.destination import parse_destination

SCOPES = ("discovery", "queue", "binding", "drain", "orders", "audit")


@dataclass(frozen=True, slots=True)
class ForwardSettings:
    to: str = setting(
        "",
        "Where events go: webhook:https://host/path, nats://host:4222/prefix (JetStream; subjects are "
        "prefix.scope) or kafka://host:9092/topic.",
        secret=True,
    )
    name: str = setting(
        "main",
        "Forwarders of one name share the work: one of them forwards, from where the last one was. Another "
        "name, such as one for each destination, begins for itself.",
    )
    scopes: str = setting("", f"What to tell of, a comma list of {', '.join(SCOPES)}. Empty: everything.")
    secret: str = setting("", "Signs what goes to a webhook, as alerts.secret signs alerts.", secret=True)
    batch: int = setting(100, "Events that one request to a webhook may hold.", most=1000)
    host: str = setting("127.0.0.1", "Address for its health and metrics. Profile dev allows loopback only.")
    port: int = setting(9460, "Port for its health and metrics.", most=65535)

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset(part.strip() for part in self.scopes.split(",") if part.strip()) or frozenset(SCOPES)

    def faults(self) -> list[str]:
        faults = check_fields(self)
        checked(faults, "name", check_name, self.name, "it")
        if self.to:
            checked(faults, "to", parse_destination, self.to)
        if unknown := sorted(self.wanted - set(SCOPES)):
            faults.append(f"scopes has {', '.join(unknown)}, may have {', '.join(SCOPES)}")
        return faults + secret_faults("secret", self.secret)
