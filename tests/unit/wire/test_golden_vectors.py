"""docs/protocol-vectors.json is what other languages test against: this side agrees with every byte of it."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from roost.wire.codes import Code, ProtocolError
from roost.wire.frame import HEADER, Frame, decode, encode
from roost.wire.handshake import ClientHandshake, Identity, ServerHandshake, proof
from roost.wire.machine import Machine

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[3] / "docs" / "protocol-vectors.json").read_text(encoding="utf-8")
)
MAX_FRAME_BYTES: int = VECTORS["maxFrameBytes"]


def named(vectors: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", vectors, ids=[vector["name"] for vector in vectors])


def frame_in(said: dict[str, Any]) -> Frame:
    def number(name: str) -> int | None:
        return None if said[name] is None else int(said[name])

    return Frame(
        said["flags"],
        said["service"],
        said["method"],
        said["code"],
        said["budgetMs"],
        int(said["request"]),
        int(said["epoch"]),
        bytes.fromhex(said["payload"]),
        number("sequence"),
        number("oldest"),
        None if said["traceparent"] is None else bytes.fromhex(said["traceparent"]),
    )


@named(VECTORS["frames"] + VECTORS["decodeOnly"])
def test_bytes_become_the_frame(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    assert decode(HEADER.unpack_from(data), data, HEADER.size, len(data)) == frame_in(vector["frame"])


@named(VECTORS["frames"])
def test_the_frame_becomes_the_bytes(vector: dict[str, Any]) -> None:
    assert encode(frame_in(vector["frame"])).hex() == vector["hex"]


@named(VECTORS["refused"])
def test_what_must_be_refused_is_refused_with_its_code(vector: dict[str, Any]) -> None:
    machine = Machine(None, serves=True, max_frame_bytes=MAX_FRAME_BYTES)
    with pytest.raises(ProtocolError) as refused:
        machine.receive(bytes.fromhex(vector["hex"]))
    assert refused.value.says is Code[vector["code"]]


def identity(side: str) -> Identity:
    said = VECTORS["handshake"][side]
    return Identity(
        bytes.fromhex(VECTORS["handshake"]["secret"]),
        said["role"],
        said["version"],
        said["maxFrameBytes"],
        said["maxInFlight"],
        nonce=bytes.fromhex(said["nonce"]),
    )


def test_the_handshake_is_the_same_byte_by_byte() -> None:
    client = Machine(ClientHandshake(identity("client")), serves=False, max_frame_bytes=MAX_FRAME_BYTES)
    server = Machine(ServerHandshake(identity("server")), serves=True, max_frame_bytes=MAX_FRAME_BYTES)
    client.begin()
    said = []
    for one, other in ((client, server), (server, client), (client, server), (server, client)):
        said.append(one.output())
        other.receive(said[-1])
    assert [frame.hex() for frame in said] == [frame["hex"] for frame in VECTORS["handshake"]["frames"]]
    assert client.is_open
    assert server.is_open


@pytest.mark.parametrize("side", ["client", "server"])
def test_the_proof_is_what_the_document_says(side: str) -> None:
    """Written anew from docs/protocol.md, without the code that made the vectors."""
    vector = VECTORS["handshake"]
    said = f"roost-wire/1 {side}".encode() + b"\0"
    for name in ("helloPayload", "challengePayload"):
        part = bytes.fromhex(vector[name])
        said += len(part).to_bytes(4, "little") + part
    secret = bytes.fromhex(vector["secret"])
    expected = hmac.new(secret, said, hashlib.sha256).hexdigest()
    assert expected == vector[f"{side}Proof"]
    parts = (bytes.fromhex(vector["helloPayload"]), bytes.fromhex(vector["challengePayload"]))
    assert proof(secret, side, *parts).hex() == expected
