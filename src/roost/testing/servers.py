"""Real servers for tests: one, a Sentinel group, a cluster. Each is gone when its `with` block ends.

    with run_valkey() as server:
        async with open_store(server.url) as store: …

All listen on free loopback ports, keep nothing on disk unless asked to, and can be
killed, stopped and started again in the middle of a test.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hiredis

from roost.store.call import pack
from roost.store.topology.embedded import find_server_binary
from roost.testing.ports import free_port
from roost.testing.waiting import START_S, wait_until


@dataclass
class RunningServer:
    """One server process, with the handles that fault tests need."""

    folder: Path
    command: list[str]
    port: int
    unixsocket: str = ""
    password: str = ""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        secret = f":{self.password}@" if self.password else ""
        return f"redis://{secret}127.0.0.1:{self.port}"

    @property
    def unix_url(self) -> str:
        return f"unix://{self.unixsocket}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        log = open(self.folder / "server.out", "ab")  # noqa: SIM115 — the child keeps it
        with log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, start_new_session=True)
        wait_until(self.answers, f"{self.command[0]} on port {self.port}", self.tail, START_S)

    def answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"server ended with {self.process.returncode}: {self.tail()}")
        with contextlib.suppress(OSError, RuntimeError):  # while it loads its data it refuses: LOADING
            return bool(self.command_reply("PING") == b"PONG")
        return False

    def command_reply(self, *args: str | bytes | int) -> Any:
        """Ask one command over a connection of its own; errors come back as exceptions."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as line:
            if self.password:
                line.sendall(pack(("AUTH", self.password)))
                _read_reply(line)
            line.sendall(pack(args))
            reply = _read_reply(line)
        if isinstance(reply, hiredis.ReplyError):
            raise RuntimeError(str(reply))
        return reply

    def flush(self) -> None:
        """Forget all data."""
        self.command_reply("FLUSHALL")

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """SIGSTOP: the process hangs, its sockets stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.kill()
        self.process.wait()

    def tail(self) -> str:
        return (self.folder / "server.out").read_text(errors="replace")[-800:]


@contextlib.contextmanager
def run_valkey(
    *,
    persistent: bool = False,
    password: str = "",
    binary: Path | None = None,
    options: Sequence[str] = (),
) -> Iterator[RunningServer]:
    """One server. `persistent` turns the append-only file on, so that a restart finds its data."""
    with _folder() as folder:
        server = _server(folder, persistent=persistent, password=password, binary=binary, options=options)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@dataclass
class SentinelGroup:
    """One primary, its replicas, and the sentinels that watch it under the name `main`."""

    servers: list[RunningServer]
    sentinels: list[RunningServer]

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'127.0.0.1:{s.port}' for s in self.sentinels)}/main"

    def primary(self) -> RunningServer:
        """The server that the first sentinel takes for the primary."""
        reply = self.sentinels[0].command_reply("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
        return next(server for server in self.servers if server.port == int(reply[1]))

    def failover(self) -> None:
        """Have the sentinels promote a replica while the primary is alive, and wait until it is."""
        before = self.primary().port
        self.sentinels[0].command_reply("SENTINEL", "FAILOVER", "main")
        self.wait_for_new_primary(before)

    def wait_for_new_primary(self, before: int) -> None:
        wait_until(lambda: self.primary().port != before, "a new primary", timeout_s=30)


@contextlib.contextmanager
def run_sentinel(
    *, replicas: int = 2, sentinels: int = 3, down_after_ms: int = 1000
) -> Iterator[SentinelGroup]:
    """One primary, `replicas` replicas and `sentinels` sentinels, agreed and in sync."""
    with _folder() as folder, contextlib.ExitStack() as stack:
        servers = [_server(folder / f"s{n}") for n in range(1 + replicas)]
        for replica in servers[1:]:
            replica.command += [
                "--replicaof",
                "127.0.0.1",
                str(servers[0].port),
                "--repl-diskless-sync-delay",
                "0",
            ]
        watchers = [_sentinel(folder / f"w{n}", servers[0].port, down_after_ms) for n in range(sentinels)]
        for server in [*servers, *watchers]:
            stack.callback(server.stop)
            server.start()
        group = SentinelGroup(servers, watchers)
        _wait_for_all(watchers, lambda one: _sees(one, replicas, sentinels), "sentinels to agree")
        _wait_for_all(servers[1:], _in_sync, "replicas to be in sync")
        yield group


@dataclass
class RunningCluster:
    """Primaries first, then their replicas."""

    servers: list[RunningServer]
    primaries: int

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'127.0.0.1:{s.port}' for s in self.servers[:3])}"

    def owner(self, slot: int) -> RunningServer:
        for first, last, primary, *_ in self._living().command_reply("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(server for server in self.servers if server.port == primary[1])
        raise RuntimeError(f"slot {slot} has no owner")

    def node_id(self, server: RunningServer) -> str:
        return str(server.command_reply("CLUSTER", "MYID").decode())

    def migrate_slot(
        self, slot: int, target: RunningServer, keys_moved: Callable[[], None] | None = None
    ) -> None:
        """Move a slot with its keys; `keys_moved` runs between moving the keys and giving the slot away."""
        source = self.owner(slot)
        target.command_reply("CLUSTER", "SETSLOT", slot, "IMPORTING", self.node_id(source))
        source.command_reply("CLUSTER", "SETSLOT", slot, "MIGRATING", self.node_id(target))
        while keys := source.command_reply("CLUSTER", "GETKEYSINSLOT", slot, 100):
            source.command_reply("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        if keys_moved is not None:
            keys_moved()
        for server in (target, source, *self.servers[: self.primaries]):
            server.command_reply("CLUSTER", "SETSLOT", slot, "NODE", self.node_id(target))

    def flush(self) -> None:
        """Forget all data."""
        for server in self.servers:
            server.flush()

    def _living(self) -> RunningServer:
        return next(server for server in self.servers if server.process and server.process.poll() is None)


@contextlib.contextmanager
def run_cluster(
    *, primaries: int = 3, replicas: int = 1, node_timeout_ms: int = 1500
) -> Iterator[RunningCluster]:
    """A cluster of `primaries`, each with `replicas`, all slots covered and every replica in sync."""
    with _folder() as folder, contextlib.ExitStack() as stack:
        servers = [
            _cluster_node(folder / f"n{n}", node_timeout_ms) for n in range(primaries * (1 + replicas))
        ]
        for server in servers:
            stack.callback(server.stop)
            server.start()
        cluster = RunningCluster(servers, primaries)
        _join(cluster)
        yield cluster


def is_running(pid: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    state = _state(pid)
    return bool(state) and not state.startswith("Z")


def is_stopped(pid: int) -> bool:
    """Whether SIGSTOP has reached it: on a busy machine that takes a while, and its threads run on."""
    return _state(pid).startswith("T")


def _state(pid: int) -> str:
    """As `ps` writes it; empty where there is no such process."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="roost-test-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _server(
    folder: Path,
    *,
    persistent: bool = False,
    password: str = "",
    binary: Path | None = None,
    options: Sequence[str] = (),
) -> RunningServer:
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    unixsocket = str(folder / "s.sock")
    command = [
        *(str(binary or find_server_binary()), "--port", str(port), "--bind", "127.0.0.1"),
        *("--unixsocket", unixsocket, "--dir", str(folder), "--save", "", "--enable-debug-command", "yes"),
        *("--appendonly", "yes" if persistent else "no"),
        *(("--requirepass", password) if password else ()),
        *options,
    ]
    return RunningServer(folder, command, port, unixsocket, password)


def _sentinel(folder: Path, primary_port: int, down_after_ms: int) -> RunningServer:
    folder.mkdir(parents=True)
    port = free_port()
    config = folder / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
        f"sentinel monitor main 127.0.0.1 {primary_port} 2\n"
        f"sentinel down-after-milliseconds main {down_after_ms}\n"
        "sentinel failover-timeout main 4000\nsentinel parallel-syncs main 2\n"
    )
    return RunningServer(folder, [str(find_server_binary()), str(config), "--sentinel"], port)


def _cluster_node(folder: Path, node_timeout_ms: int) -> RunningServer:
    cluster = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    tuning = ("--cluster-node-timeout", str(node_timeout_ms), "--repl-diskless-sync-delay", "0")
    return _server(folder, options=(*cluster, *tuning))


def _join(cluster: RunningCluster) -> None:
    """What `redis-cli --cluster create` does, without needing redis-cli."""
    servers, count = cluster.servers, cluster.primaries
    first = servers[0]
    share = 16384 // count
    for n, server in enumerate(servers[:count]):
        last = 16383 if n == count - 1 else (n + 1) * share - 1
        server.command_reply("CLUSTER", "ADDSLOTSRANGE", n * share, last)
        server.command_reply("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
    bus = int(first.command[first.command.index("--cluster-port") + 1])
    for server in servers[1:]:
        server.command_reply("CLUSTER", "MEET", "127.0.0.1", first.port, bus)
    everybody = len(servers)
    _wait_for_all(servers, lambda one: _knows(one, everybody), "cluster nodes to meet")
    for n, replica in enumerate(servers[count:]):
        replica.command_reply("CLUSTER", "REPLICATE", cluster.node_id(servers[n % count]))
    _wait_for_all(servers, lambda one: _info(one, "cluster_state") == "ok", "the cluster to be ok")
    _wait_for_all(servers[count:], _in_sync, "replicas to be in sync")
    # Clients may ask any node for the map, so every node must know who replicates whom.
    shape = sorted([1 + (everybody - count) // count] * count) if everybody > count else [1] * count
    _wait_for_all(servers, lambda one: _shard_sizes(one) == shape, "the map to spread")


def _wait_for_all(
    servers: Sequence[RunningServer], holds: Callable[[RunningServer], bool], what: str
) -> None:
    wait_until(lambda: all(holds(server) for server in servers), what, timeout_s=START_S)


def _knows(server: RunningServer, count: int) -> bool:
    return len(server.command_reply("CLUSTER", "NODES").splitlines()) == count


def _shard_sizes(server: RunningServer) -> list[int]:
    return sorted(len(row) - 2 for row in server.command_reply("CLUSTER", "SLOTS"))


def _info(server: RunningServer, name: str) -> str:
    text: str = server.command_reply("CLUSTER", "INFO").decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)[name]


def _in_sync(replica: RunningServer) -> bool:
    return bool(b"master_link_status:up" in replica.command_reply("INFO", "replication"))


def _sees(sentinel: RunningServer, replicas: int, sentinels: int) -> bool:
    flat = sentinel.command_reply("SENTINEL", "MASTER", "main")
    state = dict(zip(flat[::2], flat[1::2], strict=True))
    seen = (state[b"num-slaves"], state[b"num-other-sentinels"], state[b"flags"])
    return seen == (str(replicas).encode(), str(sentinels - 1).encode(), b"master")


def _read_reply(line: socket.socket) -> Any:
    reader = hiredis.Reader()
    while (reply := reader.gets()) is False:
        data = line.recv(65536)
        if not data:
            raise ConnectionError("closed by the server")
        reader.feed(data)
    return reply
