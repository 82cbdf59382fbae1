"""Structured logs: readable lines in a terminal, one JSON object per line otherwise.

A message is a short constant; what varies goes into `extra`, so that logs can be searched by field.
Secrets are never passed to a logger; as a second line of defence the passwords of URLs and our signed tokens
(tickets among them) are masked.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from roost.core.requests import current_request
from roost.core.tracing import context_of, current_trace

_STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {
    "message",
    "asctime",
    "taskName",
}
_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]+@")
_COLOURS = {
    logging.DEBUG: "2",
    logging.INFO: "32",
    logging.WARNING: "33",
    logging.ERROR: "31",
    logging.CRITICAL: "1;31",
}
"""Of the level, as terminals number them: dim, green, yellow, red, bold red."""
_TOKEN = re.compile(r"\bv1\.[\w-]{1,32}\.[\w-]{8,}\.[\w-]{20,}")


def mask_passwords(text: str) -> str:
    return _PASSWORD.sub(r"\1:***@", text)


def mask_secrets(text: str) -> str:
    return _TOKEN.sub("v1.***", mask_passwords(text))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    if (request_id := current_request.get()) and "request_id" not in fields:
        fields["request_id"] = request_id
    if (trace := current_trace.get()) and (found := context_of(trace)) is not None:
        fields |= {"trace_id": found.trace_id, "span_id": found.span_id}
    return fields


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return mask_secrets(msgspec.json.encode(line, enc_hook=str).decode())


class HumanFormatter(logging.Formatter):
    def __init__(self, *, is_coloured: bool = False) -> None:
        super().__init__()
        self._is_coloured = is_coloured

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        extra = "".join(f"  {name}={value}" for name, value in _fields(record).items())
        line = f"{clock} {self._level(record)} {record.getMessage()}{extra}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return mask_secrets(line)

    def _level(self, record: logging.LogRecord) -> str:
        word, colour = f"{record.levelname.lower():7}", _COLOURS.get(record.levelno)
        return f"\x1b[{colour}m{word}\x1b[0m" if self._is_coloured and colour else word


def wants_colour(environ: Mapping[str, str]) -> bool | None:
    """What the environment says of colour to all programs (no-color.org); None: nothing."""
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return True if environ.get("FORCE_COLOR") else None


def start_logging(
    level: str, form: str, stream: TextIO | None = None, *, wants_colour: bool | None = None
) -> None:
    """Send the logs of this process to `stream` (standard error). `wants_colour` None: in a terminal."""
    stream = stream or sys.stderr
    human = form == "human" or (form == "auto" and stream.isatty())
    is_coloured = stream.isatty() if wants_colour is None else wants_colour
    handler = logging.StreamHandler(stream)
    handler.setFormatter(HumanFormatter(is_coloured=is_coloured) if human else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
