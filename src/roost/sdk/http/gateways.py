"""Several gateways of one store, and the one that is used now.

ROOST_URL=http://gw-1:8400,http://gw-2:8400
"""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from roost.core.errors import InvalidInput

log = logging.getLogger("roost.sdk")


def gateway_urls(text: str) -> tuple[str, ...]:
    """The URLs of a comma list; one without a scheme has that of the first."""
    parts = [part.strip().rstrip("/") for part in text.split(",") if part.strip()]
    scheme = parts[0].partition("://")[0] if parts else ""
    urls = tuple(part if "://" in part else f"{scheme}://{part}" for part in parts)
    if not urls or not all(_is_gateway(url) for url in urls):
        raise InvalidInput(
            "every gateway URL must be http://host[:port] or https://host[:port]",
            hint="separate several with commas; a store URL stands alone",
        )
    return tuple(dict.fromkeys(urls))


def _is_gateway(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class Gateways:
    """Used in their order: the first until it fails, then the next, after the last the first again."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        self.urls = urls
        self.current = urls[0]

    def leave(self, failed: str, reason: str) -> None:
        """This one does not answer; use the next from now on, unless somebody has moved on already."""
        if self.current == failed and len(self.urls) > 1:
            self.current = self.urls[(self.urls.index(failed) + 1) % len(self.urls)]
            log.warning("gateway left", extra={"gateway": failed, "next": self.current, "reason": reason})
