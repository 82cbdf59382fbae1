"""Telling people: alerts to Slack, PagerDuty or any receiver of signed JSON.

What is loaded here does no I/O; the sending is in `roost.alerts.notifier`.
"""

from roost.alerts.payloads import Alert, AlertKind
from roost.alerts.webhooks import Webhook, parse_webhooks, verify_webhook

__all__ = ["Alert", "AlertKind", "Webhook", "parse_webhooks", "verify_webhook"]
