"""The settings of traces: `ROOST_TRACING__…`."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from roost.core.setting import check_fields, setting


@dataclass(frozen=True, slots=True)
class TracingSettings:
    per_million: int = setting(
        0,
        "Entries, of a million, that are traced, with all that follows from them; logins where a gate asks "
        "for no ticket. 0: off, and nothing of OpenTelemetry is loaded. The same for every process: one that "
        "is off leaves a hole in the traces. Each sampled person takes about 80 bytes more in the store.",
        least=0,
        most=1_000_000,
    )
    endpoint: str = setting(
        "http://127.0.0.1:4318",
        "Where OTLP over HTTP is taken, of an OpenTelemetry Collector for example; spans go to /v1/traces "
        "below it.",
    )
    headers: str = setting(
        "", "Headers for the endpoint, `name=value,name=value`: what a hosted one asks for.", secret=True
    )
    queue: int = setting(
        2048, "Spans that wait to be sent; more are dropped, and nothing waits for them.", least=512
    )

    def faults(self) -> list[str]:
        faults = check_fields(self)
        url = urlsplit(self.endpoint)
        if url.scheme not in ("http", "https") or not url.hostname:
            faults.append(f"endpoint is {self.endpoint!r}, must be a URL of http or https")
        if any("=" not in pair for pair in filter(None, self.headers.split(","))):
            faults.append("headers must be name=value, divided by commas")
        return faults

    def header_pairs(self) -> dict[str, str]:
        pairs = (pair.partition("=") for pair in self.headers.split(",") if pair)
        return {name.strip(): value.strip() for name, _, value in pairs}
