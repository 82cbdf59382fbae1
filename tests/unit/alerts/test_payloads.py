from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from roost.alerts.payloads import MEANINGS, Alert, AlertKind, json_of, summary_of
from roost.alerts.webhooks import Webhook

AT = 1_790_000_000.25
SLACK = Webhook("slack", "https://hooks.slack.com/services/T/B/x", "hooks.slack.com")
PAGERDUTY = Webhook("pagerduty", "https://events.pagerduty.com/v2/enqueue", "events.pagerduty.com", "R0UT1NG")
JSON = Webhook("json", "https://example.org/in", "example.org")
ILL = Alert("unhealthy", "501", "Server 501 does not answer", AT, {"type": "game", "group": "kr-1"})
WELL = Alert("recovered", "501", "Server 501 answers again", AT)


def body(webhook: Webhook, alert: Alert) -> dict[str, Any]:
    decoded = json.loads(json_of(webhook, alert, "roost-kr"))
    assert isinstance(decoded, dict)
    return decoded


def test_every_kind_has_a_meaning() -> None:
    assert MEANINGS.keys() == set(get_args(AlertKind))


def test_our_own_json_is_as_documented() -> None:
    assert body(JSON, ILL) == {
        "version": 1,
        "kind": "unhealthy",
        "action": "trigger",
        "severity": "error",
        "subject": "501",
        "summary": "Server 501 does not answer",
        "at": "2026-09-21T14:13:20.250+00:00",
        "dedupKey": "roost/health/501",
        "source": "roost-kr",
        "details": {"type": "game", "group": "kr-1"},
    }


# -- PagerDuty


def test_pagerduty_gets_an_event_of_its_version_2() -> None:
    assert body(PAGERDUTY, ILL) == {
        "routing_key": "R0UT1NG",
        "event_action": "trigger",
        "dedup_key": "roost/health/501",
        "client": "Roost",
        "payload": {
            "summary": "Server 501 does not answer",
            "source": "roost-kr",
            "severity": "error",
            "timestamp": "2026-09-21T14:13:20.250+00:00",
            "component": "501",
            "class": "unhealthy",
            "custom_details": {"type": "game", "group": "kr-1"},
        },
    }


@pytest.mark.parametrize(("trouble", "end"), [("unhealthy", "recovered"), ("store-away", "store-back")])
def test_the_end_of_a_trouble_resolves_what_the_trouble_triggered(trouble: AlertKind, end: AlertKind) -> None:
    opened, closed = body(PAGERDUTY, Alert(trouble, "x", "a", AT)), body(PAGERDUTY, Alert(end, "x", "b", AT))
    assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == closed["dedup_key"]


def test_a_lost_leader_triggers() -> None:
    assert body(PAGERDUTY, Alert("leader-lost", "discovery", "a", AT))["event_action"] == "trigger"


def test_subjects_of_the_same_name_and_another_family_are_not_confused() -> None:
    kinds: tuple[AlertKind, ...] = ("unhealthy", "store-away", "leader-lost", "held-back")
    assert len({Alert(kind, "main", "s", AT).dedup_key for kind in kinds}) == len(kinds)


def test_what_pagerduty_would_refuse_for_its_length_is_cut() -> None:
    one, other = (body(PAGERDUTY, Alert("unhealthy", "s" * 300 + tail, "x" * 2000, AT)) for tail in "ab")
    assert len(one["payload"]["summary"]) == 1024
    assert len(one["dedup_key"]) <= 255
    assert one["dedup_key"] != other["dedup_key"]


# -- Slack


def texts(found: object) -> list[str]:
    """Every text in a Slack message."""
    if isinstance(found, dict):
        own = [found["text"]] if isinstance(found.get("text"), str) else []
        return own + [text for value in found.values() for text in texts(value)]
    return [text for value in found for text in texts(value)] if isinstance(found, list) else []


def test_slack_gets_a_text_and_blocks() -> None:
    message = body(SLACK, ILL)
    assert message["text"] == ":red_circle: Server 501 does not answer"
    assert [block["type"] for block in message["blocks"]] == ["section", "section", "context"]
    assert [field["text"] for field in message["blocks"][1]["fields"]] == ["*type*\ngame", "*group*\nkr-1"]
    assert "roost-kr · unhealthy · 501" in message["blocks"][2]["elements"][0]["text"]


def test_without_details_slack_gets_no_empty_section() -> None:
    assert [block["type"] for block in body(SLACK, WELL)["blocks"]] == ["section", "context"]


def test_nothing_in_an_alert_can_mention_a_channel() -> None:
    evil = Alert("unhealthy", "<!channel>", "<!here> & <@U1>", AT, {"<!everyone>": "<https://evil|x>"})
    for text in texts(body(SLACK, evil)):
        assert text.replace("<!date^", "").count("<") == 0
    assert body(SLACK, evil)["text"] == ":red_circle: &lt;!here&gt; &amp; &lt;@U1&gt;"


def test_what_slack_would_refuse_for_its_length_is_cut() -> None:
    message = body(
        SLACK, Alert("unhealthy", "<" * 5000, "&" * 5000, AT, {str(n): "<" * 5000 for n in range(20)})
    )
    assert len(message["blocks"][0]["text"]["text"]) <= 3000
    assert len(message["blocks"][1]["fields"]) == 10
    assert all(len(field["text"]) <= 2000 for field in message["blocks"][1]["fields"])
    assert all(len(element["text"]) <= 2000 for element in message["blocks"][2]["elements"])


# -- summaries


def test_a_summary_says_how_many_and_names_some() -> None:
    ill = [Alert("unhealthy", str(n), "s", AT + n) for n in range(12)]
    found = summary_of([*ill, WELL, WELL])
    assert (found.kind, found.summary, found.at) == ("held-back", "14 more alerts were held back", AT + 11)
    assert found.details == {"unhealthy": "12: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …", "recovered": "2: 501"}


@pytest.mark.parametrize("webhook", [SLACK, PAGERDUTY, JSON], ids=lambda webhook: str(webhook.kind))
def test_a_summary_can_go_to_every_webhook(webhook: Webhook) -> None:
    assert b"2 more alerts were held back" in json_of(webhook, summary_of([ILL, WELL]), "roost")
