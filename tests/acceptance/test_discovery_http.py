"""Discovery over HTTP as servers in other languages use it: documented routes, tokens, streams, bad input."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from roost.testing import Answer, free_port, wait_until
from tests.acceptance.conftest import Home, http, open_home

GAME = {"type": "game", "group": "kr-1", "serverId": "501", "ports": {"udp": 7777}, "capacity": 100}
LONG_S = 600
"""A lease that outlasts several commands on a busy machine."""


class Api:
    """A running Roost, spoken to as curl would."""

    def __init__(self, home: Home, url: str, token: str) -> None:
        self.home, self.url, self.token = home, url, token

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> Answer:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        return http(self.url + path, method=method, token=self.token if token is None else token, body=data)

    def register(self, **fields: Any) -> Any:
        answer = self.ask("POST", "/sd/v1/instances", {**GAME, **fields})
        assert answer.status == 201, answer.body
        return answer.json

    def code(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, str]:
        answer = self.ask(method, path, body, token)
        error = answer.json["error"]
        assert error["message"]
        assert error["requestId"]
        return answer.status, error["code"]


@pytest.fixture
def api(home: Home) -> Api:
    up = home.up()
    return Api(home, up.url, home.token())


def test_the_documented_life_of_an_instance(api: Api) -> None:
    registered = api.register()
    path = f"/sd/v1/instances/{registered['instanceId']}"
    assert registered["ttlSeconds"] == 30
    assert registered["heartbeatIntervalMs"] == 10_000
    beat = api.ask("POST", f"{path}/heartbeat", {"performance": {"tps": 1200}})
    assert (beat.status, beat.json) == (200, {"status": "OK", "proof": ""})
    listed = api.ask("GET", "/sd/v1/instances?type=game&group=kr-1").json
    (instance,) = listed["instances"]
    assert instance["instanceId"] == registered["instanceId"]
    assert instance["performance"] == {"tps": 1200}
    assert instance["publicIp"] == "127.0.0.1"
    assert instance["lastHeartbeat"].endswith("Z")
    assert listed["revision"] >= 1
    assert api.ask("DELETE", f"{path}?type=game&group=kr-1").status == 204
    assert api.ask("GET", "/sd/v1/instances?type=game&group=kr-1").json["instances"] == []
    assert api.code("POST", f"{path}/heartbeat", {}) == (410, "REMOVED")
    assert api.ask("GET", path).json["status"] == "terminated"


@pytest.mark.parametrize(("profile", "ttl_s"), [("dev", 30), ("lan", 15), ("cloud", 30)])
def test_the_profile_decides_the_lease_of_who_asks_for_none(home: Home, profile: str, ttl_s: int) -> None:
    up = home.up("--profile", profile)
    registered = Api(home, up.url, home.token()).register()
    assert registered["ttlSeconds"] == ttl_s
    assert registered["heartbeatIntervalMs"] == ttl_s * 1000 // 3


def test_refusals_have_their_codes(api: Api) -> None:
    first = api.register()
    assert api.code("POST", "/sd/v1/instances", GAME) == (409, "SERVER_ID_TAKEN")
    assert api.code("POST", "/sd/v1/instances/01NOBODY/heartbeat", {}) == (404, "UNKNOWN")
    assert api.code("GET", "/sd/v1/instances/01NOBODY") == (404, "UNKNOWN")
    assert api.code("DELETE", "/sd/v1/instances/01NOBODY") == (404, "UNKNOWN")
    api.register(instanceId=first["instanceId"])
    beat = {"life": first["life"]}
    assert api.code("POST", f"/sd/v1/instances/{first['instanceId']}/heartbeat", beat) == (409, "FENCED")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"type": None}, "INVALID_INPUT"),
        ({"type": ""}, "INVALID_ID"),
        ({"group": "kr{1}"}, "INVALID_ID"),
        ({"type": "a:b"}, "INVALID_ID"),
        ({"serverId": "x" * 300}, "INVALID_ID"),
        ({"instanceId": "a b"}, "INVALID_ID"),
        ({"instanceId": "a\u0000b"}, "INVALID_ID"),
        ({"performance": {"x": "y" * 100_000}}, "INVALID_INPUT"),
        ({"systemInfo": {"x": "y" * 10_000}}, "INVALID_INPUT"),
        ({"performance": "fast"}, "INVALID_INPUT"),
        ({"ports": {"udp": 70000}}, "INVALID_INPUT"),
        ({"ports": {"udp": "7777"}}, "INVALID_INPUT"),
        ({"ports": {f"p{n}": n + 1 for n in range(100)}}, "INVALID_INPUT"),
        ({"labels": {f"l{n}": "" for n in range(100)}}, "INVALID_INPUT"),
        ({"capacity": -1}, "INVALID_INPUT"),
        ({"load": 2**40}, "INVALID_INPUT"),
        ({"weight": 99_999}, "INVALID_INPUT"),
        ({"ttlSeconds": 0.1}, "INVALID_INPUT"),
        ({"status": "suspect"}, "INVALID_INPUT"),
        ({"hostname": "h" * 1000}, "INVALID_INPUT"),
        ({"health": {"kind": "http", "port": "web"}}, "INVALID_INPUT"),
        ({"health": {"kind": "shell", "port": "udp"}}, "INVALID_INPUT"),
    ],
)
def test_a_bad_registration_is_refused_with_the_field(
    shared_api: Api, change: dict[str, Any], code: str
) -> None:
    body = {name: value for name, value in {**GAME, "serverId": "", **change}.items() if value is not None}
    assert shared_api.code("POST", "/sd/v1/instances", body) == (400, code)
    assert shared_api.ask("GET", "/sd/v1/instances").json["instances"] == []


@pytest.fixture(scope="module")
def shared_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with open_home(tmp_path_factory.mktemp("shared")) as home:
        up = home.up()
        yield Api(home, up.url, home.token())


def test_a_body_of_a_megabyte_is_refused_before_it_is_read(shared_api: Api) -> None:
    body = json.dumps({**GAME, "performance": {"x": "y" * 1_000_000}}).encode()
    assert shared_api.code("POST", "/sd/v1/instances", body) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("body", [b"{", b"", b"[1]", b"null", b"\xff\xfe\x00"])
def test_malformed_bodies_are_refused(shared_api: Api, body: bytes) -> None:
    status, code = shared_api.code("POST", "/sd/v1/instances", body)
    assert status == 400
    assert code in ("MALFORMED_JSON", "INVALID_INPUT")


@pytest.mark.parametrize("path", ["%7B%7D", "a%20b", "%00", "x" * 300, "..%2f..%2fetc"])
def test_odd_ids_in_paths_are_never_a_500(shared_api: Api, path: str) -> None:
    for method, tail in (("GET", ""), ("DELETE", ""), ("POST", "/heartbeat")):
        status, _ = shared_api.code(method, f"/sd/v1/instances/{path}{tail}", {} if tail else None)
        assert status in (400, 404)


@pytest.mark.parametrize(
    "query", ["type=a{b}", "type=a:b", "verify=perhaps", "colour=red", "group=" + "x" * 300]
)
def test_odd_queries_are_refused(shared_api: Api, query: str) -> None:
    assert shared_api.code("GET", f"/sd/v1/instances?{query}")[0] == 400


def test_g17_tokens_open_what_their_scopes_say_until_they_are_revoked(api: Api) -> None:
    reader = api.ask("POST", "/auth/v1/tokens", {"name": "monitoring", "scopes": ["read"]}).json
    writer = api.ask("POST", "/auth/v1/tokens", {"name": "game servers", "scopes": ["register"]}).json
    assert api.ask("GET", "/sd/v1/instances", token=reader["token"]).status == 200
    assert api.code("POST", "/sd/v1/instances", GAME, reader["token"]) == (403, "FORBIDDEN")
    assert api.ask("POST", "/sd/v1/instances", GAME, writer["token"]).status == 201
    assert api.code("GET", "/auth/v1/tokens", token=writer["token"]) == (403, "FORBIDDEN")
    listed = api.ask("GET", "/auth/v1/tokens")
    assert {token["name"] for token in listed.json["tokens"]} == {"monitoring", "game servers"}
    assert reader["token"].encode() not in listed.body
    assert api.ask("DELETE", f"/auth/v1/tokens/{reader['id']}").status == 204
    assert api.code("GET", "/sd/v1/instances", token=reader["token"]) == (401, "UNAUTHENTICATED")
    assert api.code("DELETE", "/auth/v1/tokens/nobody") == (404, "NOT_FOUND")


def test_g17_a_token_revoked_at_one_gateway_is_refused_at_the_other(api: Api) -> None:
    token = api.ask("POST", "/auth/v1/tokens", {"name": "x", "scopes": ["read"]}).json
    other = api.home.start("gateway", "--port", str(free_port()))
    assert http(f"{other.url}/sd/v1/instances", token=token["token"]).status == 200
    api.ask("DELETE", f"/auth/v1/tokens/{token['id']}")
    wait_until(
        lambda: http(f"{other.url}/sd/v1/instances", token=token["token"]).status == 401, "the refusal"
    )


@pytest.mark.parametrize(
    "body", [{"name": "x", "scopes": []}, {"name": "", "scopes": ["read"]}, {"name": "x", "scopes": ["root"]}]
)
def test_bad_tokens_are_not_made(shared_api: Api, body: dict[str, Any]) -> None:
    assert shared_api.code("POST", "/auth/v1/tokens", body) == (400, "INVALID_INPUT")


def test_tokens_are_kept_only_as_digests(api: Api) -> None:
    made = api.ask("POST", "/auth/v1/tokens", {"name": "x", "scopes": ["read"]}).json["token"]
    aof = b"".join(path.read_bytes() for path in (api.home.store_folder / "appendonlydir").iterdir())
    assert b"roost:tokens" in aof
    assert made.encode() not in aof
    assert made.split("_", 2)[2].encode() not in aof


def test_an_order_is_kept_over_a_restart_of_the_instance(api: Api) -> None:
    registered = api.register()
    path = f"/sd/v1/instances/{registered['instanceId']}"
    ordered = api.ask("PUT", f"{path}/override", {"drain": True, "weight": 5}).json
    assert ordered["instance"]["accepting"] is False
    assert api.ask("POST", f"{path}/heartbeat", {}).json == {"status": "DRAIN", "proof": ""}
    api.ask("DELETE", path)
    again = api.register()
    (instance,) = api.ask("GET", "/sd/v1/instances").json["instances"]
    assert instance["instanceId"] == again["instanceId"]
    assert instance["override"] == {"drain": True, "outOfService": False, "weight": 5, "drainLife": ""}
    assert instance["accepting"] is False
    lifted = api.ask("PUT", f"/sd/v1/instances/{again['instanceId']}/override", {}).json
    assert lifted["instance"]["override"] is None
    assert lifted["instance"]["accepting"] is True


class Stream:
    """A raw reader of server-sent events."""

    def __init__(self, api: Api, path: str, last_id: str = "") -> None:
        host, port = api.url.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nX-API-Token: {api.token}\r\n"
        self._socket.sendall((head + (f"Last-Event-ID: {last_id}\r\n" if last_id else "") + "\r\n").encode())
        self._text = b""

    def next(self) -> tuple[str, str, Any]:
        """(id, event, data) of the next event."""
        while True:
            for block in self._text.split(b"\n\n")[:-1]:
                self._text = self._text[self._text.index(b"\n\n") + 2 :]
                fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
                if b"data" in fields:
                    return fields[b"id"].decode(), fields[b"event"].decode(), json.loads(fields[b"data"])
            data = self._socket.recv(65536)
            assert data, "the stream ended"
            self._text += data

    def close(self) -> None:
        self._socket.close()


def test_g1_a_stream_is_resumed_by_its_last_event_id_without_a_gap(api: Api) -> None:
    stream = Stream(api, "/sd/v1/watch?type=game")
    assert stream.next()[1] == "snapshot"
    registered = api.register()
    last_id, event, data = stream.next()
    assert (event, data["instance"]["serverId"]) == ("added", "501")
    stream.close()
    api.ask("DELETE", f"/sd/v1/instances/{registered['instanceId']}")
    api.register()
    resumed = Stream(api, "/sd/v1/watch?type=game", last_id)
    assert [resumed.next()[1] for _ in range(2)] == ["removed", "added"]
    resumed.close()
    lost = Stream(api, "/sd/v1/watch?type=game", "999-999")
    assert lost.next()[1] == "snapshot"
    lost.close()


def test_prometheus_finds_targets_and_performance(api: Api) -> None:
    performance = {"tps": 60, "note": "x", "beyond": 10**400}
    api.register(ports={"metrics": 9100, "udp": 7777}, privateIp="10.1.2.3", performance=performance)
    (target,) = api.ask("GET", "/sd/v1/prometheus").json
    assert target["targets"] == ["10.1.2.3:9100"]
    assert target["labels"]["__meta_roost_server_id"] == "501"
    text = api.ask("GET", "/sd/v1/prometheus/performance").body.decode()
    assert 'roost_instance_tps{group="kr-1",server="501",type="game"} 60.0' in text
    assert "note" not in text
    assert "beyond" not in text


def test_prometheus_gets_an_error_and_no_empty_list_while_the_store_is_away(api: Api) -> None:
    api.register(ports={"metrics": 9100})
    os.kill(api.home.store_pid(), signal.SIGSTOP)
    try:
        assert api.ask("GET", "/sd/v1/prometheus").status == 503
    finally:
        os.kill(api.home.store_pid(), signal.SIGCONT)


def test_the_public_address_is_taken_from_trusted_proxies_only(home: Home) -> None:
    def register(url: str, token: str) -> str:
        request = urllib.request.Request(
            f"{url}/sd/v1/instances", data=json.dumps({**GAME, "serverId": ""}).encode()
        )
        request.add_header("X-API-Token", token)
        request.add_header("X-Forwarded-For", "203.0.113.9, 198.51.100.7, 127.0.0.5")
        with urllib.request.urlopen(request, timeout=10) as response:
            instance_id = json.loads(response.read())["instanceId"]
        return str(http(f"{url}/sd/v1/instances/{instance_id}", token=token).json["instance"]["publicIp"])

    up = home.up()
    assert register(up.url, home.token()) == "127.0.0.1"
    trusting = home.start("gateway", "--port", str(free_port()), ROOST_GATEWAY__TRUSTED_PROXIES="127.0.0.0/8")
    assert register(trusting.url, home.token()) == "198.51.100.7"


def test_the_command_line_shows_and_orders(api: Api) -> None:
    registered = api.register(ttlSeconds=LONG_S)
    listed = api.home.run("instances", "list", "--type", "game").stdout
    assert registered["instanceId"] in listed
    assert "1 instance, revision" in listed
    assert json.loads(api.home.run("instances", "list", "--json").stdout)["instances"][0]["serverId"] == "501"
    assert "drain" in api.home.run("instances", "override", "501", "--drain").stdout
    shown = json.loads(api.home.run("instances", "show", "501", "--json").stdout)
    assert shown["instance"]["override"]["drain"] is True
    assert [line["event"] for line in shown["history"]] == ["added", "override"]
    wrong = api.home.run("instances", "override", "501")
    assert wrong.returncode == 1
    assert "--drain" in wrong.stderr
    nobody = api.home.run("instances", "show", "999")
    assert nobody.returncode == 1
    assert "UNKNOWN" in nobody.stderr


def test_the_command_line_removes_for_good(api: Api) -> None:
    registered = api.register(ttlSeconds=LONG_S)
    assert api.home.run("instances", "remove", "501").returncode == 0
    assert api.code("POST", f"/sd/v1/instances/{registered['instanceId']}/heartbeat", {}) == (410, "REMOVED")
    again = api.home.run("instances", "remove", "502")
    assert again.returncode == 1
    assert "UNKNOWN" in again.stderr
    assert api.home.run("instances", "remove", "502", "--missing-ok").returncode == 0


def test_the_command_line_watches(api: Api) -> None:
    watching = api.home.start("instances", "watch", "--json", until="snapshot")
    api.register()
    wait_until(lambda: '"added"' in watching.text, "the change", lambda: watching.text)
    assert watching.interrupt() == 0


def test_the_command_line_makes_and_revokes_tokens(api: Api) -> None:
    made = api.home.run("token", "create", "ci", "--scope", "read", "--scope", "register")
    token = made.stdout.strip()
    assert api.ask("GET", "/sd/v1/instances", token=token).status == 200
    listed = json.loads(api.home.run("token", "list", "--json").stdout)["tokens"]
    assert [entry["name"] for entry in listed] == ["ci"]
    assert api.home.run("token", "revoke", listed[0]["id"]).returncode == 0
    assert api.ask("GET", "/sd/v1/instances", token=token).status == 401
    assert api.home.run("token", "create", "x", "--scope", "root").returncode == 1


def test_one_instance_is_probed_on_demand(api: Api) -> None:
    port = int(api.url.rpartition(":")[2])
    health = {"kind": "http", "port": "http", "path": "/healthz"}
    made = api.register(serverId="501", publicIp="127.0.0.1", ports={"http": port}, health=health)
    path = f"/sd/v1/instances/{made['instanceId']}"
    assert api.ask("GET", path).json["instance"]["probe"] is None
    probe = api.ask("GET", f"{path}?verify=true").json["instance"]["probe"]
    assert (probe["ok"], probe["error"]) == (True, "")
