"""`roost dns` as a process, asked by `dig` where it is installed and by a resolver over real sockets."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import dns.flags
import dns.message
import dns.query
import dns.rcode
import pytest

import roost
from roost.testing import RunningServer, eventually, free_port, run_valkey, wait_until

from .conftest import Home, Started, http, open_home, sees_its_lag

HOST = "127.0.0.1"


class Dns(NamedTuple):
    started: Started
    valkey: RunningServer
    port: int

    def ask(self, name: str, kind: str = "A", *, tcp: bool = False) -> dns.message.Message:
        query = dns.message.make_query(name, kind)
        over = dns.query.tcp if tcp else dns.query.udp
        return over(query, HOST, port=self.port, timeout=5)

    def addresses(self, name: str) -> set[str]:
        return {rdata.to_text() for rrset in self.ask(name, tcp=True).answer for rdata in rrset}

    @property
    def ops(self) -> str:
        return f"http://{HOST}:{self.port + 1000}"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dns]:
    port = free_port()
    with run_valkey() as valkey, open_home(tmp_path_factory.mktemp("dns")) as home:
        yield Dns(home.start("dns", "--port", str(port), "--store", valkey.url), valkey, port)


async def test_a_server_is_told_while_it_takes_users_and_no_longer(running: Dns) -> None:
    async with roost.connect(running.valkey.url) as client:
        async with client.registered(
            type="game", group="kr-1", server_id="501", private_ip="10.1.2.3", ports={"ws": 8000}
        ) as me:
            await eventually(lambda: running.addresses("kr-1.game.roost.") == {"10.1.2.3"}, "its address")
            srv = running.ask("_ws._tcp.game.roost.", "SRV")
            assert [rdata.to_text() for rdata in srv.answer[0]] == ["0 100 8000 501.game.server.roost."]
            assert running.ask("game.roost.", "SRV").answer, "its only port needs no name"

            me.status = "draining"
            await eventually(lambda: not running.addresses("kr-1.game.roost."), "its end of accepting")
            assert running.ask("kr-1.game.roost.").rcode() == dns.rcode.NOERROR
        await eventually(lambda: running.ask("game.roost.").rcode() == dns.rcode.NXDOMAIN, "its leaving")


@pytest.mark.skipif(shutil.which("dig") is None, reason="needs dig (Debian package bind9-dnsutils)")
async def test_dig_gets_many_servers_over_tcp_after_a_short_answer_over_udp(running: Dns) -> None:
    async with roost.connect(running.valkey.url) as client:
        for number in range(40):
            await client.register(
                type="lobby", group="eu", private_ip=f"10.9.0.{number + 1}", ports={"ws": 1}
            )
        await eventually(lambda: len(running.addresses("eu.lobby.roost.")) == 40, "all of them")

        told = subprocess.run(
            ["dig", f"@{HOST}", "-p", str(running.port), "+noedns", "+short", "eu.lobby.roost.", "A"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout

    lines = [line for line in told.splitlines() if not line.startswith(";")]
    assert sorted(lines) == sorted(f"10.9.0.{number + 1}" for number in range(40))


def test_bytes_that_are_no_query_harm_nobody_and_are_counted(running: Dns) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for junk in (b"", b"x", bytes(11), b"\xff" * 600, bytes(12)):
            udp.sendto(junk, (HOST, running.port))
    with socket.create_connection((HOST, running.port), timeout=5) as tcp:
        tcp.sendall(b"\x00\x05hello")
        assert tcp.recv(100) == b"", "who sends no query over TCP is hung up on"

    assert running.ask("roost.", "SOA").rcode() == dns.rcode.NOERROR
    page = http(f"{running.ops}/metrics").body.decode()
    assert 'roost_dns_answers_total{code="FORMERR"}' in page
    assert 'roost_loop_failures_total{loop="dns servers"} 0.0' in page
    wait_until(lambda: sees_its_lag(f"{running.ops}/metrics"), "a pause that was timed")
    assert "Traceback" not in running.started.text
    assert http(f"{running.ops}/readyz").status == 200


async def test_the_last_list_is_told_while_the_store_is_away(home: Home, valkey: RunningServer) -> None:
    port = free_port()
    async with roost.connect(valkey.url) as client:
        await client.register(type="game", group="kr-1", private_ip="10.1.2.3", ports={"ws": 8000})
        own = Dns(home.start("dns", "--port", str(port), "--store", valkey.url), valkey, port)
        wait_until(lambda: own.addresses("game.roost.") == {"10.1.2.3"}, "the list")
    valkey.kill()

    assert own.addresses("game.roost.") == {"10.1.2.3"}
    assert http(f"{own.ops}/readyz").status == 200
    assert own.started.interrupt() == 0
