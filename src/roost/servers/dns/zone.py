"""The servers that DNS tells of: what discovery said last, by what can be asked for. Pure."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from roost.api.discovery import Change, Instance
from roost.servers.dns.names import Asked, Between, OneServer, Service, label_of, server_label

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
MOST_WEIGHT = 65535


@dataclass(frozen=True, slots=True)
class Server:
    """What DNS can say of one instance."""

    label: str
    type: str
    group: str
    address: Address
    ports: tuple[tuple[str, int], ...]
    """By name, as DNS has it."""
    weight: int
    accepting: bool

    def port(self, name: str) -> int | None:
        """The port of that name; without a name its only one."""
        if not name:
            return self.ports[0][1] if len(self.ports) == 1 else None
        return dict(self.ports).get(name)


class Zone:
    """`known` is False until discovery has been heard. Afterwards the last that was heard counts, however
    long ago: an old list is nearly right, an answer of nothing is wrong for sure."""

    def __init__(self, *, public: bool = False, most: int = 48, rng: random.Random | None = None) -> None:
        self.known = False
        self.unnameable = 0
        """Instances that DNS cannot tell of: of a type or group that is no label, or without an address."""
        self._public = public
        self._most = most
        self._rng = rng or random.Random()
        self._left_out: set[str] = set()
        self._by_id: dict[str, Server] = {}
        self._services: dict[tuple[str, str], dict[str, Server]] = {}
        """By type and group, and by type alone, where the group is empty."""
        self._named: dict[tuple[str, str], dict[str, Server]] = {}
        """By type and name: two groups may have the same."""

    def __len__(self) -> int:
        return len(self._by_id)

    def apply(self, change: Change) -> None:
        if change.event == "snapshot":
            self._take_all(change.instances or ())
        elif change.event == "removed" or change.instance is None:
            self._drop(change.instance_id)
        else:
            self._put(change.instance)
        self.unnameable = len(self._left_out)

    def exists(self, asked: Asked) -> bool:
        """Whether the name is there: somebody is registered under it, accepting or not."""
        match asked:
            case Between(type=""):
                return True
            case Between(type=type_):
                return (type_, "") in self._services
            case OneServer(type=type_, name=name):
                return (type_, name) in self._named
            case Service(type=type_, group=group, port=port):
                found = self._services.get((type_, group), {})
                return bool(found) if not port else any(port in dict(s.ports) for s in found.values())

    def servers(self, asked: Asked, fits: Callable[[Server], bool] = lambda _: True) -> list[Server]:
        """Who takes users there and `fits`, in an order drawn anew, at most as many as an answer may have."""
        match asked:
            case OneServer(type=type_, name=name):
                return [s for s in self._named.get((type_, name), {}).values() if fits(s)]
            case Service(type=type_, group=group):
                there = self._services.get((type_, group), {}).values()
                # What does not fit is left out before the draw: it would push out those few that do.
                found = [server for server in there if server.accepting and fits(server)]
                return self._rng.sample(found, min(len(found), self._most))
            case _:
                return []

    def _take_all(self, instances: Iterable[Instance]) -> None:
        self.known = True
        self._by_id, self._services, self._named, self._left_out = {}, {}, {}, set()
        for instance in instances:
            self._put(instance)

    def _put(self, instance: Instance) -> None:
        self._drop(instance.instance_id)
        server = self._server(instance)
        if server is None:
            self._left_out.add(instance.instance_id)
            return
        self._by_id[instance.instance_id] = server
        for index, key in self._places(server):
            index.setdefault(key, {})[instance.instance_id] = server

    def _drop(self, instance_id: str) -> None:
        self._left_out.discard(instance_id)
        server = self._by_id.pop(instance_id, None)
        if server is None:
            return
        for index, key in self._places(server):
            del index[key][instance_id]
            if not index[key]:
                del index[key]

    def _places(
        self, server: Server
    ) -> Sequence[tuple[dict[tuple[str, str], dict[str, Server]], tuple[str, str]]]:
        return (
            (self._services, (server.type, server.group)),
            (self._services, (server.type, "")),
            (self._named, (server.type, server.label)),
        )

    def _server(self, instance: Instance) -> Server | None:
        type_, group = label_of(instance.type), label_of(instance.group)
        address = self._address(instance)
        if not type_ or not group or address is None:
            return None
        named = ((label_of(name), port) for name, port in sorted(instance.ports.items()))
        return Server(
            server_label(instance.server_id or instance.instance_id),
            type_,
            group,
            address,
            tuple((name, port) for name, port in named if name),
            min(instance.weight, MOST_WEIGHT),
            instance.accepting,
        )

    def _address(self, instance: Instance) -> Address | None:
        both = (instance.private_ip, instance.public_ip)
        for text in reversed(both) if self._public else both:
            try:
                return ipaddress.ip_address(text)
            except ValueError:
                continue
        return None
