"""What the command line makes of gateways that break off, and of what is no gateway."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from roost.cli.client import ask, print_lines
from roost.core.errors import StartFailed
from roost.settings import Loaded, Settings

WHOLE = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{1}\n\r\n4\r\n{2}\n\r\n0\r\n\r\n"
CUT = WHOLE[: WHOLE.index(b"4\r\n{2}")]

Answering = Callable[[bytes], str]


@pytest.fixture
def answering() -> Iterator[Answering]:
    """Starts what answers one request with these bytes and hangs up; tells its URL."""
    with ExitStack() as stack:

        def start(answer: bytes) -> str:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=_answer_once, args=(listener, answer), daemon=True).start()
            return f"http://127.0.0.1:{listener.getsockname()[1]}"

        yield start


def _answer_once(listener: socket.socket, answer: bytes) -> None:
    try:
        connection, _ = listener.accept()
    except OSError:  # nobody asked
        return
    with connection:
        connection.recv(65536)
        connection.sendall(answer)


def settings_for(folder: Path, *urls: str) -> Settings:
    return Loaded.load({"url": ",".join(urls), "data": str(folder)}).settings


def test_an_export_that_breaks_off_is_not_begun_anew_by_another_gateway(
    answering: Answering, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(StartFailed, match="not all of it"):
        print_lines(settings_for(tmp_path, answering(CUT), answering(WHOLE)), "/audit/v1/export", ())
    assert capsys.readouterr().out == "{1}\n"


def test_an_export_is_asked_of_the_next_gateway_before_its_first_line(
    answering: Answering, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_lines(settings_for(tmp_path, answering(b""), answering(WHOLE)), "/audit/v1/export", ())
    assert capsys.readouterr().out == "{1}\n{2}\n"


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_is_no_whole_answer_is_an_error_of_ours(
    answer: bytes, method: str, answering: Answering, tmp_path: Path
) -> None:
    with pytest.raises(StartFailed, match="not as Roost does"):
        ask(settings_for(tmp_path, answering(answer)), method, "/healthz", dict)


def test_a_reader_that_goes_away_is_no_fault_of_the_gateway(
    answering: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`roost audit --export | head` asks no other gateway."""

    def gone(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", gone)
    with pytest.raises(BrokenPipeError):
        print_lines(settings_for(tmp_path, answering(WHOLE), answering(WHOLE)), "/audit/v1/export", ())
