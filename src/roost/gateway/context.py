"""What the routes of one gateway are built from."""

from __future__ import annotations

from dataclasses import dataclass, field

from roost.app import Platform
from roost.core.networks import Network, parse_networks
from roost.gateway.live.live import Live
from roost.gateway.workers.colleagues import Colleagues
from roost.settings import Settings
from roost.tokens.service import Tokens
from roost.web.connections import ConnectionLimits
from roost.web.route import Route, RouteStats


@dataclass(slots=True)
class Gateway:
    platform: Platform
    tokens: Tokens
    live: Live
    """What people see of everything, while somebody looks."""
    colleagues: Colleagues | None = None
    """The workers of this gateway, where it has several."""
    table: dict[Route, RouteStats] = field(default_factory=dict)
    """Every route with its counts; filled when all of them are known."""

    @property
    def proxies(self) -> tuple[Network, ...]:
        """Load balancers whose X-Forwarded-For is believed."""
        return parse_networks(self.platform.settings.gateway.trusted_proxies)


def connection_limits(settings: Settings) -> ConnectionLimits:
    """What a gateway's listener is held to."""
    own = settings.gateway
    per_address = 0 if settings.is_dev() else own.connections_per_address
    return ConnectionLimits(per_address, proxies=parse_networks(own.trusted_proxies))
