"""The settings of alerts: `ROOST_ALERTS__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.alerts.webhooks import Webhook, parse_webhooks
from roost.core.setting import check_fields, checked, secret_faults, setting


@dataclass(frozen=True, slots=True)
class AlertSettings:
    webhooks: str = setting(
        "",
        "Where alerts go: slack=URL,pagerduty,json=URL. pagerduty takes a URL too, as in pagerduty=URL (EU). "
        "Each has its own queue and its own limit: a slow receiver delays no other.",
        secret=True,
    )
    secret: str = setting("", "Signs every alert, so that a receiver can verify it.", secret=True)
    pagerduty_key: str = setting(
        "", "Integration key of PagerDuty's Events API v2; pagerduty needs it.", secret=True
    )
    per_minute: int = setting(
        30,
        "Alerts to one webhook in a minute; what is over it is told as one summary. It protects people from "
        "a fleet that falls at once, and the receiver's own rate limit from us.",
    )
    burst: int = setting(10, "Alerts to one webhook at once, after a quiet time.")

    def faults(self) -> list[str]:
        faults = check_fields(self)
        checked(faults, "webhooks", self.targets)
        return faults + secret_faults("secret", self.secret)

    def targets(self) -> tuple[Webhook, ...]:
        return parse_webhooks(self.webhooks, self.pagerduty_key)
