"""`compose.yaml` as processes of this machine: the same commands, settings and files, without a daemon.

A container has a loopback address of its own (127.x.y.n), so every one keeps its ports. What is rewritten:
names of services become those addresses, published ports those of their container, paths inside a container a
copy in its folder. A database image is replaced by a throwaway server, and its URL by that one's.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from roost.local import fresh_secrets
from roost.settings import variable
from roost.store.topology.embedded import find_server_binary
from roost.testing import START_S, run_postgresql, wait_until

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "compose.yaml"
NOT_HERE = ("postgres", "grafana")
"""Images whose programs are not started: one is replaced, the other only shows."""
LOOPBACK = "127.0.0.0/8"
STOP_S = 20.0
_VARIABLE = re.compile(r"\$\{(\w+)(?::\?[^}]*)?\}")
_ENTRYPOINT = re.compile(r"^ENTRYPOINT (\[.*\])$", re.MULTILINE)


def read_compose(variables: Mapping[str, str], path: Path = COMPOSE) -> dict[str, Any]:
    """The file with its variables filled in; a KeyError names one that is missing."""
    text = _VARIABLE.sub(lambda found: variables[found[1]], path.read_text(encoding="utf-8"))
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def compose_secrets() -> dict[str, str]:
    """What `make .env` writes."""
    return {variable(name): value for name, value in fresh_secrets().items()} | {
        "POSTGRES_PASSWORD": secrets.token_hex(24)
    }


def image_entrypoint() -> list[str]:
    found = _ENTRYPOINT.search((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert found, "the Dockerfile has an entry point in the form of a list"
    return [str(word) for word in yaml.safe_load(found[1])]


def command_of(service: Mapping[str, Any]) -> list[str]:
    """Program and arguments, as a container of it starts."""
    return [*service.get("entrypoint", image_entrypoint()), *service.get("command", [])]


@dataclass
class Container:
    name: str
    address: str
    command: list[str]
    environment: dict[str, str]
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "out.log"

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdout=out,
                stderr=out,
                cwd=self.folder,
                start_new_session=True,
            )

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def answers(self, port: int) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"{self.name} has ended: {self.tail()}")
        with suppress(OSError), socket.create_connection((self.address, port), timeout=1):
            return True
        return False

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-1500:]


@dataclass
class Containers:
    folder: Path
    database_url: str
    secrets: dict[str, str] = field(default_factory=compose_secrets)

    def __post_init__(self) -> None:
        self.compose = read_compose(self.secrets)
        services: dict[str, Any] = self.compose["services"]
        net = f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}"
        self.addresses = {name: f"{net}.{number}" for number, name in enumerate(services, 10)}
        self._published = {
            port.rpartition(":")[0]: f"{self.addresses[name]}:{port.rpartition(':')[2]}"
            for name, service in services.items()
            for port in service.get("ports", ())
        }
        self._names = re.compile(rf"\b({'|'.join(self.addresses)})\b(?=[: ]\d)|(?<=-ip )(sentinel-\d)$")
        self._programs = self._make_programs()
        self.running = {
            name: self._container(name, service) for name, service in services.items() if name not in NOT_HERE
        }

    def url(self, port: int, scheme: str = "http") -> str:
        """What is published of this port, as somebody outside reaches it."""
        return f"{scheme}://{self._published[f'127.0.0.1:{port}']}"

    def _make_programs(self) -> Path:
        """Programs of the images by their names; the store's binds to the container's own address."""
        programs = self.folder / "bin"
        programs.mkdir()
        _script(programs / "roost", f'exec {sys.executable} -m roost "$@"')
        _script(programs / "valkey-server", f'exec {find_server_binary()} "$@" --bind "$ADDRESS"')
        for name in ("haproxy", "prometheus"):
            found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
            if found:
                (programs / name).symlink_to(found)
        return programs

    def _container(self, name: str, service: Mapping[str, Any]) -> Container:
        folder = self.folder / name
        folder.mkdir()
        paths = self._paths(name, service, folder)
        environment = {
            key: self.addresses.get(str(value)) or self.rewritten(name, str(value), paths)
            for key, value in service.get("environment", {}).items()
        }
        environment |= {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "ADDRESS": self.addresses[name],
            "HOME": str(folder),
            "ROOST_DATA": str(folder / "data"),
        }
        program, *words = command_of(service)
        arguments = [
            self.addresses[word] if before.endswith("-ip") else self.rewritten(name, word, paths)
            for before, word in zip([program, *words], words, strict=False)
        ]
        found = shutil.which(program, path=environment["PATH"])
        return Container(name, self.addresses[name], [found or program, *arguments], environment, folder)

    def _paths(self, name: str, service: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """Path inside the container → what stands for it here."""
        paths: dict[str, str] = {}
        for volume in service.get("volumes", ()):
            source, inside = volume.split(":")[:2]
            local = folder / inside.strip("/").replace("/", "_")
            paths[inside] = str(local)
            if not source.startswith("./"):
                local.mkdir()
        for secret in service.get("secrets", ()):
            local = folder / secret
            local.write_text(self.secrets[self.compose["secrets"][secret]["environment"]])
            paths[f"/run/secrets/{secret}"] = str(local)
        for volume in service.get("volumes", ()):  # a file may name paths of others
            source, inside = volume.split(":")[:2]
            if source.startswith("./"):
                text = (ROOT / source).read_text(encoding="utf-8")
                Path(paths[inside]).write_text(self.rewritten(name, text, paths), encoding="utf-8")
        return paths

    def rewritten(self, name: str, text: str, paths: Mapping[str, str]) -> str:
        text = re.sub(r"postgresql://[^/\s]+/roost", lambda _: self.database_url, text)
        for inside in sorted(paths, key=len, reverse=True):
            text = re.sub(rf"(?<![\w/]){re.escape(inside)}\b", lambda _, to=paths[inside]: to, text)  # type: ignore[misc]
        for published, own in self._published.items():
            text = text.replace(published, own)
        text = text.replace("0.0.0.0", self.addresses[name]).replace(self._subnet, LOOPBACK)
        return self._names.sub(lambda found: self.addresses[found[1] or found[2]], text)

    @property
    def _subnet(self) -> str:
        return str(self.compose["networks"]["default"]["ipam"]["config"][0]["subnet"])

    def start(self) -> None:
        """All at once, as a machine that was switched on: each waits for what it needs."""
        for container in self.running.values():
            container.start()

    def wait_until_up(self, name: str, port: int) -> None:
        one = self.running[name]
        wait_until(lambda: one.answers(port), f"{name} to listen on {port}", one.tail, START_S)


def _script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@contextmanager
def run_containers(folder: Path) -> Iterator[Containers]:
    """None is started yet; in the end none runs."""
    with run_postgresql() as database:
        containers = Containers(folder, database.url)
        try:
            yield containers
        finally:
            for container in reversed(containers.running.values()):
                container.stop()
