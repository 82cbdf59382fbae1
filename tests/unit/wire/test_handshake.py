"""Only who knows the secret gets in, and nothing that was recorded helps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.wire.codes import Code, ProtocolError
from roost.wire.frame import HEADER, decode, encode
from roost.wire.handshake import HELLO, Hello, Identity, ServerHandshake, proof
from roost.wire.machine import Bye, Machine, Opened
from tests.unit.wire.conversation import MAX_FRAME, SECRET, client, opened, request, server


def test_both_learn_who_the_other_is_and_what_it_takes() -> None:
    by_client, by_server = opened(client(), server())
    (at_client,), (at_server,) = by_client, by_server
    assert isinstance(at_client, Opened)
    assert isinstance(at_server, Opened)
    assert (at_client.peer.role, at_client.peer.version, at_client.peer.max_in_flight) == ("entity", "2.0", 8)
    assert (at_server.peer.role, at_server.peer.version) == ("gate", "1.0")


def test_the_secret_does_not_travel() -> None:
    one, other = client(), server()
    one.begin()
    said = hello = one.output()
    other.receive(hello)
    said += (challenge := other.output())
    one.receive(challenge)
    said += (shown := one.output())
    other.receive(shown)
    said += other.output()
    assert SECRET not in said
    assert SECRET.decode() not in repr(Identity(SECRET, "gate"))


def test_a_client_with_another_secret_is_told_so_and_learns_nothing() -> None:
    one, other = client(b"another secret of"), server()
    one.begin()
    other.receive(one.output())
    one.receive(other.output())
    with pytest.raises(ProtocolError, match="the client does not know the secret") as refused:
        other.receive(one.output())
    assert refused.value.says is Code.UNAUTHENTICATED
    assert one.receive(other.output()) == [Bye(Code.UNAUTHENTICATED, "the client does not know the secret")]
    assert not one.is_open
    assert not other.is_open


def test_a_server_with_another_secret_is_refused_by_the_client() -> None:
    """It cannot make the welcome, even if it lets everybody in."""
    one = client()
    one.begin()
    hello = payload_of(one.output())
    challenge = Identity(b"another secret of", "entity").hello()
    one.receive(reply(HELLO, challenge))
    with pytest.raises(ProtocolError, match="the server does not know the secret"):
        one.receive(reply(2, proof(b"another secret of", "server", hello, challenge)))


def test_a_recorded_handshake_does_not_open_another_connection() -> None:
    one, other = client(), server()
    one.begin()
    recorded = [one.output()]
    other.receive(recorded[0])
    one.receive(other.output())
    recorded.append(one.output())
    assert other.receive(recorded[1])

    later = server()
    later.receive(recorded[0])
    with pytest.raises(ProtocolError, match="does not know the secret"):
        later.receive(recorded[1])


def test_a_recorded_server_does_not_open_another_client() -> None:
    one, other = client(), server()
    one.begin()
    other.receive(one.output())
    challenge = other.output()
    one.receive(challenge)
    other.receive(one.output())
    welcome = other.output()

    later = client()
    later.begin()
    later.receive(challenge)
    with pytest.raises(ProtocolError, match="the server does not know the secret"):
        later.receive(welcome)


def test_a_nonce_that_comes_back_is_refused() -> None:
    one = client(nonce=b"n" * 32)
    one.begin()
    with pytest.raises(ProtocolError, match="our own nonce"):
        one.receive(reply(HELLO, Identity(SECRET, "entity", nonce=b"n" * 32).hello()))


def test_a_clients_own_proof_is_no_welcome() -> None:
    one = client()
    one.begin()
    one.output()
    one.receive(reply(HELLO, Identity(SECRET, "entity").hello()))
    with pytest.raises(ProtocolError, match="the server does not know the secret"):
        one.receive(reply(2, payload_of(one.output())))


def test_what_was_changed_on_the_way_is_found() -> None:
    """Somebody in the middle raises the role; both proofs are over what each side saw."""
    one, other = client(role="gate"), server()
    one.begin()
    other.receive(one.output().replace(b"gate", b"boss"))
    one.receive(other.output())
    with pytest.raises(ProtocolError, match="does not know the secret"):
        other.receive(one.output())


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_role_that_is_not_expected_is_refused(side: str) -> None:
    one = client(accepts=frozenset({"orders"}) if side == "client" else frozenset())
    other = server(accepts=frozenset({"orders"}) if side == "server" else frozenset())
    with pytest.raises(ProtocolError, match="of this role is not expected here"):
        opened(one, other)


def test_a_call_before_the_handshake_ends_the_connection() -> None:
    other = server()
    with pytest.raises(ProtocolError, match="no part of the handshake"):
        other.receive(encode(request(1)))
    assert other.is_over


@pytest.mark.parametrize(
    "greeting",
    [
        b"",
        b"\xc1",
        b"\x80",
        Identity(SECRET, "", nonce=b"n" * 32).hello(),
        Identity(SECRET, "a{b}", nonce=b"n" * 32).hello(),
        Identity(SECRET, "gate", nonce=b"short").hello(),
        Identity(SECRET, "gate", "v" * 129, nonce=b"n" * 32).hello(),
        Identity(SECRET, "gate", "1", -1, nonce=b"n" * 32).hello(),
    ],
    ids=["empty", "no msgpack", "no fields", "no role", "braces", "short nonce", "version", "negative"],
)
def test_a_greeting_that_does_not_fit_is_refused(greeting: bytes) -> None:
    other = server()
    with pytest.raises(ProtocolError):
        other.receive(encode_own(0, HELLO, greeting))
    assert other.is_over


def test_nobody_makes_us_keep_more_than_a_greeting_before_the_handshake() -> None:
    other = server()
    with pytest.raises(ProtocolError, match="at most 512 are allowed"):
        other.receive((513).to_bytes(4, "little"))


def test_a_secret_is_not_short() -> None:
    with pytest.raises(ProtocolError, match="at least 16 bytes"):
        Identity(b"short", "gate")


def test_two_connections_never_have_the_same_nonce() -> None:
    assert Identity(SECRET, "gate").nonce != Identity(SECRET, "gate").nonce


def test_without_a_handshake_the_connection_is_open_at_once() -> None:
    plain = Machine(None, serves=True, max_frame_bytes=MAX_FRAME)
    assert plain.begin() == [Opened(Hello("", b""))]
    assert plain.receive(encode(request(1))) == [request(1)]


def test_a_server_says_nothing_before_it_is_asked() -> None:
    assert ServerHandshake(Identity(SECRET, "entity")).begin() is None


def payload_of(data: bytes) -> bytes:
    return decode(HEADER.unpack_from(data), data, HEADER.size, len(data)).payload


def encode_own(flags: int, method: int, payload: bytes) -> bytes:
    return HEADER.pack(28 + len(payload), 1, flags, 0, method, 0, 0, 0, 0) + payload


def reply(method: int, payload: bytes) -> bytes:
    return encode_own(1, method, payload)


@given(st.booleans(), st.integers(0, 10_000), st.integers(1, 255))
def test_no_changed_byte_of_what_a_client_says_gets_in(in_hello: bool, place: int, change: int) -> None:
    one, other = client(), server()
    one.begin()
    hello = one.output()
    try:
        other.receive(changed(hello, place, change) if in_hello else hello)
        one.receive(other.output())
        shown = one.output()
        other.receive(shown if in_hello else changed(shown, place, change))
    except ProtocolError:
        pass
    assert not other.is_open


@given(st.booleans(), st.integers(0, 10_000), st.integers(1, 255))
def test_no_changed_byte_of_what_a_server_says_is_believed(
    in_challenge: bool, place: int, change: int
) -> None:
    one, other = client(), server()
    one.begin()
    other.receive(one.output())
    challenge = other.output()
    try:
        one.receive(changed(challenge, place, change) if in_challenge else challenge)
        other.receive(one.output())
        one.receive(changed(other.output(), 0 if in_challenge else place, change))
    except ProtocolError:
        pass
    assert not one.is_open


def changed(data: bytes, place: int, change: int) -> bytes:
    """One byte of the payload is another."""
    if len(data) <= HEADER.size:
        return data
    at = HEADER.size + place % (len(data) - HEADER.size)
    return data[:at] + bytes([data[at] ^ change]) + data[at + 1 :]
