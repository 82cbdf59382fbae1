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
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

_STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {
    "message",
    "asctime",
    "taskName",
}
_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]+@")
_TOKEN = re.compile(r"\bv1\.[\w-]{1,32}\.[\w-]{8,}\.[\w-]{20,}")


def mask_passwords(text: str) -> str:
    return _PASSWORD.sub(r"\1:***@", text)


def mask_secrets(text: str) -> str:
    return _TOKEN.sub("v1.***", mask_passwords(text))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


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
    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        extra = "".join(f"  {name}={value}" for name, value in _fields(record).items())
        line = f"{clock} {record.levelname.lower():7} {record.getMessage()}{extra}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return mask_secrets(line)


def start_logging(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send the logs of this process to `stream` (standard error)."""
    stream = stream or sys.stderr
    human = form == "human" or (form == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(HumanFormatter() if human else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
