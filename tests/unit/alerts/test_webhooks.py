from __future__ import annotations

import hashlib
import hmac

import pytest

from roost.alerts.webhooks import PAGERDUTY_URL, parse_webhooks, signed_headers, verify_webhook

SECRET = "a-secret-of-the-alerts"
BODY = b'{"kind":"unhealthy"}'
NOW = 1_790_000_000.7


def test_pagerduty_knows_its_url_and_takes_another() -> None:
    plain, european = parse_webhooks("pagerduty,pagerduty=https://events.eu.pagerduty.com/v2/enqueue", "key")
    assert (plain.url, plain.host) == (PAGERDUTY_URL, "events.pagerduty.com")
    assert european.host == "events.eu.pagerduty.com"


def test_an_equals_sign_in_a_url_stays() -> None:
    assert parse_webhooks("json=https://h/in?a=b")[0].url == "https://h/in?a=b"


def test_the_key_goes_to_pagerduty_only() -> None:
    assert parse_webhooks("json=https://h/in", "key")[0].routing_key == ""


def test_a_webhook_does_not_show_its_secrets() -> None:
    text = repr(parse_webhooks("slack=https://user:hunter2@h/hunter2,pagerduty", "hunter2"))
    assert "hunter2" not in text
    assert "host='h'" in text


# -- signatures


def test_the_signature_is_as_documented() -> None:
    mac = hmac.new(SECRET.encode(), b"1790000000." + BODY, hashlib.sha256).hexdigest()
    assert signed_headers(SECRET, BODY, NOW) == {
        "X-Roost-Timestamp": "1790000000",
        "X-Roost-Signature": f"v1={mac}",
    }


def test_without_a_secret_nothing_is_signed_and_nothing_verifies() -> None:
    assert signed_headers("", BODY, NOW) == {}
    assert not verify_webhook("", "1790000000", BODY, "v1=" + "0" * 64, NOW)


def verified(
    *,
    secret: str = SECRET,
    timestamp: str | None = None,
    body: bytes = BODY,
    signature: str | None = None,
    late: float = 0,
) -> bool:
    headers = signed_headers(SECRET, BODY, NOW)
    return verify_webhook(
        secret,
        headers["X-Roost-Timestamp"] if timestamp is None else timestamp,
        body,
        headers["X-Roost-Signature"] if signature is None else signature,
        NOW + late,
    )


def test_what_was_sent_verifies_within_the_tolerance() -> None:
    assert verified()
    assert verified(late=299)
    assert verified(late=-299)


@pytest.mark.parametrize("late", [301, -302])
def test_what_is_too_old_or_from_the_future_does_not(late: float) -> None:
    assert not verified(late=late)


def test_what_was_tampered_with_does_not() -> None:
    assert not verified(body=BODY + b" ")
    assert not verified(timestamp="1790000001")
    assert not verified(secret=SECRET + "x")


@pytest.mark.parametrize("signature", ["", "v1=", "v2=" + "0" * 64, "ü", "\udcff", "v1=" + "0" * 64])
def test_a_strange_signature_is_no_fault(signature: str) -> None:
    assert not verified(signature=signature)


@pytest.mark.parametrize("timestamp", ["", "now", "1.5", "-1", "9" * 5000, "١٢"])
def test_a_strange_timestamp_is_no_fault(timestamp: str) -> None:
    assert not verified(timestamp=timestamp)
