"""The alert in docs/operations.md is what a `json` webhook gets."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from roost.alerts.notifier import Notifier
from roost.alerts.options import SendOptions
from roost.alerts.payloads import Alert, json_of
from roost.alerts.triggers import Triggers
from roost.alerts.webhooks import parse_webhooks
from roost.discovery.turns import Turn

OPERATIONS = Path(__file__).resolve().parents[3] / "docs" / "operations.md"


class Told:
    """A notifier that keeps what it is told."""

    def __init__(self) -> None:
        self.alerts: list[Alert] = []

    def tell(self, alert: Alert) -> None:
        self.alerts.append(alert)


def documented() -> Any:
    found = re.search(r"```json\n(.+?)```", OPERATIONS.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_documented_alert_is_what_an_unhealthy_server_makes() -> None:
    told = Told()
    turn = Turn("501", "game", "eu", "1790000000250000", True, "no heartbeat, or its main loop hangs", 1)
    Triggers(cast(Notifier, told), lambda: ()).server_turned(turn)

    (alert,) = told.alerts
    (webhook,) = parse_webhooks("json=https://ops.example.org/roost")
    sent = json.loads(json_of(webhook, alert, SendOptions().source))

    expected = documented()
    assert datetime.fromisoformat(expected["at"]).tzinfo is not None
    assert sent | {"at": expected["at"]} == expected
    assert list(sent) == list(expected)
