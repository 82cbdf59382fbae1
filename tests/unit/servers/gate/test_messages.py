"""What clients and gates say: the same words in both formats, and nothing that comes is a surprise."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import UNSET

from roost.core.errors import InvalidInput
from roost.servers.gate.messages import JSON, MAX_ID_BYTES, MSGPACK, Codec, Envelope, TypeWelcome, Welcome
from roost.servers.gate.queued import Refusal

ENCODE: dict[Codec, Any] = {JSON: msgspec.json.encode, MSGPACK: msgspec.msgpack.encode}
DECODE: dict[Codec, Any] = {JSON: msgspec.json.decode, MSGPACK: msgspec.msgpack.decode}
BOTH = pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=["json", "msgpack"])

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=10,
)


@BOTH
@given(body=PLAIN, id_=PLAIN)
def test_a_body_reaches_the_entity_as_it_was_and_the_id_comes_back(codec: Codec, body: Any, id_: Any) -> None:
    assume(len(ENCODE[codec](id_)) <= MAX_ID_BYTES)
    message = codec.read(ENCODE[codec]({"id": id_, "seq": 7, "body": body}))
    payload = Envelope("entity", "ann", "s-1").around(codec.body_of(message))
    assert msgspec.msgpack.decode(payload) == ["entity", "ann", "s-1", body]

    answer = msgspec.msgpack.encode([{"echo": body}, "journal"])
    said = DECODE[codec](codec.result(message.id, 7, "entity", answer, 99))
    assert said == {
        "id": id_,
        "seq": 7,
        "type": "entity",
        "result": {"echo": body},
        "durability": "journal",
        "epoch": 99,
    }


@BOTH
@given(data=st.binary(max_size=300))
def test_whatever_comes_is_a_message_or_refused(codec: Codec, data: bytes) -> None:
    with contextlib.suppress(InvalidInput):  # anything else that it raises is a fault
        message = codec.read(data)
        if message.body is not UNSET:
            assert codec.body_of(message)


@BOTH
@pytest.mark.parametrize(
    "words",
    [
        {"seq": 0, "body": 1},
        {"seq": 2**53, "body": 1},
        {"seq": 1.5, "body": 1},
        {"seq": "1", "body": 1},
        {"type": "", "body": 1},
        {"type": "x" * 129, "body": 1},
        {"login": 1},
        {"login": "x" * 5000},
        {"login": "x", "types": ["a"] * 9},
        {"id": "x" * 300, "body": 1},
    ],
)
def test_what_does_not_fit_is_refused(codec: Codec, words: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        codec.read(ENCODE[codec](words))


@BOTH
def test_unknown_words_are_ignored(codec: Codec) -> None:
    assert codec.read(ENCODE[codec]({"body": 1, "colour": "red"})).body is not UNSET


def test_numbers_that_msgpack_has_no_room_for_are_refused() -> None:
    message = JSON.read(b'{"body": 123456789012345678901234567890}')
    with pytest.raises(InvalidInput, match="the body cannot be read"):
        JSON.body_of(message)


@pytest.mark.parametrize("deep", [b"[" * 5000 + b"]" * 5000, b'{"a":' * 5000 + b"1" + b"}" * 5000])
def test_a_body_without_end_is_refused(deep: bytes) -> None:
    with pytest.raises(InvalidInput):
        JSON.body_of(JSON.read(b'{"body":' + deep + b"}"))


@BOTH
def test_an_answer_that_is_none_is_told_as_a_fault(codec: Codec) -> None:
    for payload in (b"", b"\xc1", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({"a": 1})):
        with pytest.raises(InvalidInput):
            codec.result(UNSET, 1, "entity", payload, 1)
        with pytest.raises(InvalidInput):
            codec.push("entity", payload, 1)


def test_json_has_bytes_as_base64_and_refuses_what_it_cannot_say() -> None:
    payload = msgspec.msgpack.encode([b"\x00\x01", "journal"])
    assert msgspec.json.decode(JSON.result(UNSET, 1, "e", payload, 1))["result"] == "AAE="
    with pytest.raises(InvalidInput):
        JSON.result(UNSET, 1, "e", msgspec.msgpack.encode([msgspec.msgpack.Ext(1, b""), "journal"]), 1)


@BOTH
def test_the_other_words_of_a_gate(codec: Codec) -> None:
    decode = DECODE[codec]
    push = msgspec.msgpack.encode(["entity", "ann", 3, {"x": 1}])
    assert decode(codec.push("entity", push, 9)) == {"push": {"x": 1}, "type": "entity", "epoch": 9, "n": 3}
    assert decode(codec.error(Refusal("FULL", "no room", 250), UNSET, 4, "entity")) == {
        "seq": 4,
        "type": "entity",
        "error": {"code": "FULL", "message": "no room", "retryAfterMs": 250},
    }
    assert decode(codec.error(Refusal("BAD", "what"))) == {"error": {"code": "BAD", "message": "what"}}
    assert decode(codec.bye(Refusal("DRAINING", "stops", 100), "tok")) == {
        "bye": {"code": "DRAINING", "message": "stops", "retryAfterMs": 100},
        "resume": "tok",
    }
    assert decode(codec.resume("tok")) == {"resume": "tok"}
    standing = TypeWelcome(4, "new", "journal", 9)
    assert decode(codec.welcome(Welcome("ann", "s", "tok", {"entity": standing}, 4096))) == {
        "welcome": {
            "user": "ann",
            "session": "s",
            "resume": "tok",
            "types": {"entity": {"lastSeq": 4, "reason": "new", "durability": "journal", "epoch": 9}},
            "maxBytes": 4096,
        }
    }
