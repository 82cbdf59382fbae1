"""The embedded server: started, found again, replaced and stopped without leaving anything behind."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from roost.core.errors import DataFolderInUse, StartFailed, StoreUnavailable
from roost.core.loops import Loops
from roost.store.store import Store
from roost.store.topology import embedded
from roost.store.topology.embedded import EmbeddedServer, find_server_binary, launch
from roost.store.url import parse_store_url
from roost.testing import eventually, is_running, open_store

OWNER = """
import asyncio, sys
from pathlib import Path
from roost.store.topology.embedded import launch

async def main():
    server = await launch(Path(sys.argv[1]))
    print(server.pid, server.address.host, flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@dataclass
class Owner:
    """Another process that owns the folder."""

    process: subprocess.Popen[str]
    server_pid: int
    socket: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def owner(folder: Path) -> Iterator[Owner]:
    command = [sys.executable, "-c", OWNER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid, socket = process.stdout.readline().split()
        try:
            yield Owner(process, int(pid), Path(socket))
        finally:
            process.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


async def ask(server: EmbeddedServer, *command: str) -> Any:
    async with open_store(f"unix://{server.address.host}") as store:
        return await store.call(*command)


async def test_a_server_is_started_and_stopped_without_a_trace(folder: Path) -> None:
    server = await launch(folder)
    socket_folder = Path(server.address.host).parent
    assert is_running(server.pid)
    assert await ask(server, "PING") == b"PONG"

    await server.stop()

    assert not is_running(server.pid)
    assert not socket_folder.exists()
    assert not (folder / "server.json").exists()


async def test_data_and_socket_are_for_their_owner_only(folder: Path) -> None:
    server = await launch(folder)
    socket = Path(server.address.host)
    try:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    finally:
        await server.stop()


async def test_it_runs_in_a_session_of_its_own_and_keeps_what_it_is_told(folder: Path) -> None:
    server = await launch(folder)
    try:
        assert os.getsid(server.pid) == server.pid
        assert await ask(server, "CONFIG", "GET", "maxmemory-policy") == [b"maxmemory-policy", b"noeviction"]
        assert await ask(server, "CONFIG", "GET", "appendonly") == [b"appendonly", b"yes"]
        assert await ask(server, "CONFIG", "GET", "port") == [b"port", b"0"]
    finally:
        await server.stop()


async def test_what_was_written_is_there_after_a_restart(folder: Path) -> None:
    for expected in (None, b"1", b"2"):
        store = await Store.open(parse_store_url(f"embedded:{folder}"))
        assert await store.call("GET", "counter") == expected
        await store.call("INCR", "counter")
        await store.close()


async def test_a_folder_in_use_names_the_process_that_uses_it(folder: Path, owner: Owner) -> None:
    with pytest.raises(DataFolderInUse, match=f"in use by process {owner.process.pid}"):
        await launch(folder)
    assert is_running(owner.server_pid)


async def test_two_platforms_in_one_process_do_not_share_a_folder(folder: Path) -> None:
    server = await launch(folder)
    try:
        with pytest.raises(DataFolderInUse, match=f"process {os.getpid()}"):
            await launch(folder)
    finally:
        await server.stop()


async def test_a_second_process_may_attach_and_leaves_the_server_running(folder: Path, owner: Owner) -> None:
    store = await Store.open(parse_store_url(f"embedded:{folder}"), attach=True)
    assert await store.call("SET", "x", "1") == b"OK"
    await store.close()

    assert is_running(owner.server_pid)


async def test_after_kill_9_of_its_owner_the_server_is_adopted_with_its_data(
    folder: Path, owner: Owner
) -> None:
    attached = await Store.open(parse_store_url(f"embedded:{folder}"), attach=True)
    await attached.call("SET", "x", "kept")
    await attached.close()

    owner.kill()
    server = await launch(folder)

    try:
        assert server.adopted
        assert server.pid == owner.server_pid
        assert await ask(server, "GET", "x") == b"kept"
    finally:
        await server.stop()
    assert not is_running(owner.server_pid)
    assert not owner.socket.parent.exists()


async def test_after_kill_9_of_both_a_new_server_finds_the_data(folder: Path, owner: Owner) -> None:
    """What its log has taken: a write is put off while an earlier one is synced, for at most two seconds."""
    attached = await Store.open(parse_store_url(f"embedded:{folder}"), attach=True)
    await attached.call("SET", "x", "kept")
    assert await attached.call("WAITAOF", 1, 0, 4000) == [1, 0]
    await attached.close()

    owner.kill()
    os.kill(owner.server_pid, signal.SIGKILL)
    await eventually(lambda: not is_running(owner.server_pid), "the end of the server")
    server = await launch(folder)

    try:
        assert not server.adopted
        assert server.pid != owner.server_pid
        assert await ask(server, "GET", "x") == b"kept"
    finally:
        await server.stop()


async def test_a_server_that_does_not_answer_is_replaced(
    folder: Path, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "ATTACH_TIMEOUT_S", 0.2)
    monkeypatch.setattr(embedded, "STOP_TIMEOUT_S", 0.5)
    attached = await Store.open(parse_store_url(f"embedded:{folder}"), attach=True)
    await attached.call("SET", "x", "kept")
    assert await attached.call("WAITAOF", 1, 0, 4000) == [1, 0]
    await attached.close()

    owner.kill()
    os.kill(owner.server_pid, signal.SIGSTOP)
    server = await launch(folder)

    try:
        assert not server.adopted
        assert not is_running(owner.server_pid)
        assert not owner.socket.parent.exists()
        assert await ask(server, "GET", "x") == b"kept"
    finally:
        await server.stop()


async def test_a_running_server_that_nobody_can_find_is_not_guessed_at(folder: Path, owner: Owner) -> None:
    owner.kill()
    (folder / "server.json").unlink()

    with pytest.raises(StartFailed, match=r"server\.json does not say where"):
        await launch(folder)
    assert is_running(owner.server_pid)


async def test_a_note_of_an_earlier_server_is_gone_before_a_new_one_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an owner killed in that moment would leave a note by which a stranger's process is ended."""
    folder.mkdir()
    (folder / "server.json").write_text('{"pid": 1, "socket": "/nowhere/store.sock"}')
    seen: list[bool] = []
    start = asyncio.create_subprocess_exec

    async def watched(*args: Any, **named: Any) -> asyncio.subprocess.Process:
        seen.append((folder / "server.json").exists())
        return await start(*args, **named)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", watched)
    server = await launch(folder)
    await server.stop()

    assert seen == [False]


async def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(StartFailed, match="cannot write to the data folder"):
        await launch(tmp_path / "store")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_may_not_be_written_is_told(folder: Path) -> None:
    folder.mkdir(mode=0o500)
    with pytest.raises(StartFailed, match="Permission denied"):
        await launch(folder)


async def test_a_program_that_is_no_server_is_told_and_frees_the_folder(folder: Path) -> None:
    with pytest.raises(StartFailed, match="the store did not start"):
        await launch(folder, "/bin/false")
    text = folder.parent / "program"
    text.write_text("no program")
    with pytest.raises(StartFailed, match="not an executable file"):
        await launch(folder, str(text))
    text.chmod(0o700)
    with pytest.raises(StartFailed, match="the store did not start: Exec format error"):
        await launch(folder, str(text))

    server = await launch(folder)
    await server.stop()


async def test_a_restart_that_fails_is_tried_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "RESTART_PAUSE_S", 0.05)
    start, failures = asyncio.create_subprocess_exec, [OSError(errno.EAGAIN, "no process left")]

    async def fails_once(*args: Any, **named: Any) -> asyncio.subprocess.Process:
        if failures:
            raise failures.pop()
        return await start(*args, **named)

    async with contextlib.aclosing(_Running(await launch(folder))) as running:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", fails_once)
        await _die_and_come_back(running.server)
        assert failures == []


async def test_the_folder_of_the_socket_is_made_anew_for_a_restart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cleans /tmp may have taken it."""
    monkeypatch.setattr(embedded, "RESTART_PAUSE_S", 0.05)
    async with contextlib.aclosing(_Running(await launch(folder))) as running:
        socket = Path(running.server.address.host)
        shutil.rmtree(socket.parent)
        await _die_and_come_back(running.server)
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["open", "link"])
async def test_a_folder_of_the_socket_that_is_not_ours_alone_is_not_taken(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Who made it could put a socket of their own into it."""
    monkeypatch.setattr(embedded, "RESTART_PAUSE_S", 0.05)
    async with contextlib.aclosing(_Running(await launch(folder))) as running:
        theirs = Path(running.server.address.host).parent
        shutil.rmtree(theirs)
        if kind == "open":
            theirs.mkdir()
            theirs.chmod(0o777)
        else:
            theirs.symlink_to(tmp_path, target_is_directory=True)
        loops = Loops()
        running.server.watch(loops)
        os.kill(running.server.pid, signal.SIGKILL)
        await eventually(lambda: loops.loop("embedded store").failures >= 2, "refusals to start in it")
        if kind == "open":
            theirs.rmdir()
        else:
            theirs.unlink()
        await _answers(running.server)


async def _die_and_come_back(server: EmbeddedServer) -> None:
    server.watch(Loops())
    died = server.pid
    os.kill(died, signal.SIGKILL)
    await eventually(lambda: server.pid != died, "another server")
    await _answers(server)


async def _answers(server: EmbeddedServer) -> None:
    async def does() -> bool:
        with contextlib.suppress(StoreUnavailable):  # its socket comes a moment after it
            return bool(await ask(server, "PING"))
        return False

    await eventually(does, "an answer")


async def test_embedded_needs_a_folder() -> None:
    with pytest.raises(StartFailed, match="needs a folder"):
        await Store.open(parse_store_url("embedded:"))


async def test_a_server_that_loads_its_data_is_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However long that takes: only a server that says nothing is given up."""
    slow = folder.parent / "slow-server"
    slow.write_text(f'#!/bin/sh\nexec {find_server_binary()} "$@" --key-load-delay 400\n')
    slow.chmod(0o755)
    async with contextlib.aclosing(_Running(await launch(folder))) as first:
        async with open_store(f"unix://{first.server.address.host}") as store:
            await asyncio.gather(*(store.call("SET", f"k{n}", n) for n in range(5000)))
    monkeypatch.setattr(embedded, "START_TIMEOUT_S", 0.5)
    caplog.set_level("INFO")
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with contextlib.aclosing(_Running(await launch(folder, str(slow)))) as second:
        assert loop.time() - began > 0.5
        assert "the embedded store loads its data" in caplog.text
        async with open_store(f"unix://{second.server.address.host}") as store:
            assert await store.call("DBSIZE") == 5001  # and the format


class _Running:
    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server

    async def aclose(self) -> None:
        await self.server.stop()
