"""A throwaway etcd, and the requests to its HTTP/JSON gateway that do what discovery does."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from http_load import Work, request
from roost.core.ids import new_ulid
from roost.testing import free_port, wait_until

PREFIX = "sd/game/kr-1/"


@dataclass(frozen=True)
class Etcd:
    port: int
    pid: int


@contextlib.contextmanager
def run_etcd(*options: str) -> Iterator[Etcd]:
    """One member on loopback, its data in a folder that goes with it."""
    program = shutil.which("etcd")
    if program is None:
        sys.exit("this benchmark needs the program etcd 3.4 or later: `apt-get install etcd-server`")
    port, peer = free_port(), f"http://127.0.0.1:{free_port()}"
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="roost-etcd-") as folder:
        command = [
            *(program, "--data-dir", f"{folder}/data", "--log-level", "error", "--logger", "zap"),
            *("--listen-client-urls", url, "--advertise-client-urls", url),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}", *options),
        ]
        with open(Path(folder) / "log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(lambda: _is_healthy(url), "etcd", (Path(folder) / "log").read_text)
            yield Etcd(port, process.pid)
        finally:
            process.kill()
            process.wait()


def _is_healthy(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=1) as reply:
        return bool(json.load(reply)["health"] == "true")
    return False


def registering(record: bytes, ttl_s: int) -> Work:
    """Grant a lease, then put the record under it."""
    grant = _post("/v3/lease/grant", {"TTL": ttl_s})
    value = _b64(record)

    def work() -> Generator[bytes, bytes, None]:
        granted = yield grant
        lease = json.loads(granted)["ID"]
        yield _post(
            "/v3/kv/put", {"key": _b64(f"sd/load/kr-1/{new_ulid()}".encode()), "value": value, "lease": lease}
        )

    return work


def filling(records: Sequence[bytes]) -> Work:
    """Put each record under the prefix that `reading` reads."""

    def work() -> Generator[bytes, bytes, None]:
        for record in records:
            yield _post("/v3/kv/put", {"key": _b64(f"{PREFIX}{new_ulid()}".encode()), "value": _b64(record)})

    return work


def reading(*, serializable: bool) -> Work:
    end = PREFIX[:-1] + chr(ord(PREFIX[-1]) + 1)
    wanted = {"key": _b64(PREFIX.encode()), "range_end": _b64(end.encode()), "serializable": serializable}
    asked = _post("/v3/kv/range", wanted)

    def work() -> Generator[bytes, bytes, None]:
        yield asked

    return work


def _post(path: str, body: object) -> bytes:
    return request("POST", path, json.dumps(body).encode())


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
