"""Dockerfile, compose.yaml and the files that they mount name only what exists."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from roost.core.errors import InvalidSettings
from roost.settings import NAMES, Loaded, variable
from roost.version import __version__
from tests.deploy.commands import faults_of_command
from tests.deploy.containers import ROOT, command_of, compose_secrets, image_entrypoint, read_compose
from tests.deploy.manifests import ports_of

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, Any] = read_compose(compose_secrets())["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "roost:local"}


def environment(service: dict[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in service["environment"].items()}


def settings_faults(service: dict[str, Any]) -> list[str]:
    known = {variable(name) for name in NAMES}
    unknown = [f"{key} is no setting" for key in environment(service) if key not in known]
    try:
        Loaded.load(environ=environment(service))
    except InvalidSettings as error:
        return [*unknown, str(error)]
    return unknown


def test_the_compose_file_has_the_roles_that_it_promises() -> None:
    roles = sorted(service["command"][0] for service in OURS.values())
    assert roles == ["entity"] * 2 + ["gameserver"] + ["gate"] * 2 + ["gateway"] * 2 + ["manager"] * 2
    others = SERVICES.keys() - OURS.keys()
    assert others == {"haproxy", "valkey-1", "valkey-2", "postgres", "prometheus", "grafana"} | {
        f"sentinel-{number}" for number in (1, 2, 3)
    }


@pytest.mark.parametrize("name", OURS)
def test_a_role_starts_by_a_command_and_settings_that_exist(name: str) -> None:
    program, *arguments = command_of(OURS[name])
    assert program == "roost"
    assert faults_of_command(arguments) == []
    assert settings_faults(OURS[name]) == []


def test_a_wrong_command_or_setting_would_be_found() -> None:
    assert faults_of_command(["gateway", "--prot", "8400"])
    service = {"environment": OURS["gate-1"]["environment"] | {"ROOST_GATE__CAPASITY": 1}}
    assert "ROOST_GATE__CAPASITY is no setting" in settings_faults(service)


def test_every_role_runs_without_privileges_on_a_root_that_nobody_writes() -> None:
    for service in OURS.values():
        assert (service["read_only"], service["cap_drop"], service["user"]) == (True, ["ALL"], "10001:10001")


def test_haproxy_and_prometheus_ask_ports_where_somebody_listens() -> None:
    texts = [
        (ROOT / path).read_text() for path in ("deploy/haproxy/haproxy.cfg", "deploy/compose/prometheus.yml")
    ]
    asked = {(name, int(port)) for text in texts for name, port in re.findall(r"\b([a-z]+-\d):(\d+)", text)}
    assert asked
    for name, port in asked:
        assert port in ports_of(OURS[name]["command"][0]).values(), (name, port)
    pages = re.findall(r"server gate-\d \S+ port (\d+)", texts[0])
    assert pages == [str(ports_of("gate")["metrics"])] * 2
    assert set(re.findall(r"http-check send meth GET uri (\S+)", texts[0])) == {"/readyz"}


def test_everything_that_is_mounted_is_there() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert not source.startswith("./") or (ROOT / source).exists(), f"{name}: {source}"


def test_nothing_is_published_beyond_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_variables_of_the_compose_file_are_those_that_make_writes() -> None:
    used = set(re.findall(r"\$\{(\w+)", (ROOT / "compose.yaml").read_text()))
    assert used == compose_secrets().keys()


def test_the_image_is_small_unprivileged_and_says_its_version() -> None:
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"python:3.12-slim"}
    assert re.search(r"^USER 10001:10001$", DOCKERFILE, re.MULTILINE)
    assert f"ARG VERSION={__version__}\n" in DOCKERFILE
    assert 'org.opencontainers.image.version="${VERSION}"' in DOCKERFILE
    assert image_entrypoint() == ["roost"]
    assert faults_of_command(yaml.safe_load(re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[0])) != []


def test_everything_that_the_image_copies_is_sent_to_the_builder() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [line.split()[1:-1] for line in DOCKERFILE.splitlines() if re.match(r"COPY (?!--from)", line)]
    assert {name for names in copied for name in names} == sent
    assert all((ROOT / name).exists() for name in sent)


def test_the_ports_of_the_image_are_those_of_the_roles() -> None:
    exposed = set(map(int, re.findall(r"^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)[0].split()))
    roles = ("gateway", "manager", "gate", "gameserver", "entity", "orders")
    assert exposed == {port for role in roles for port in ports_of(role).values()}


def test_haproxy_takes_its_configuration(tmp_path: Path) -> None:
    haproxy = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if haproxy is None:
        pytest.skip("no haproxy here (Debian: haproxy; `make deps-ci` installs it)")
    text = (ROOT / "deploy" / "haproxy" / "haproxy.cfg").read_text()
    (tmp_path / "haproxy.cfg").write_text(re.sub(r"\b(haproxy|gateway-\d|gate-\d)(?=:\d)", "127.0.0.1", text))
    done = subprocess.run(
        [haproxy, "-c", "-f", str(tmp_path / "haproxy.cfg")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
