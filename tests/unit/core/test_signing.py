"""Signed tokens: one valid spelling, one kind, and never a hint at the secret."""

from __future__ import annotations

import hmac
from base64 import b64encode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import InvalidInput, TokenRefused
from roost.core.signing import MAX_TOKEN_CHARS, Kind, MasterKey, Signer, parse_keys

OLD = MasterKey("k1", bytes(range(32)))
NEW = MasterKey("k2", bytes(range(32, 64)))
TICKETS = Signer(Kind.TICKET, (OLD,))

GOLDEN = {
    Kind.TICKET: "v1.k1.VGhlbGxv.56uUCgqnEMtPhZmu_aete9XwbXepuRx8ARk-6RUE7aY",
    Kind.RECEIPT: "v1.k1.UmhlbGxv.QEsetnyq7OQy1KakWy6-R-LJw7IErqaM566DB72--xo",
    Kind.LOGIN: "v1.k1.R2hlbGxv.ZKMM2c1q7ZVZGkWz6-y4LLG5XRzOS_nK16wkaMG5TMI",
    Kind.RESUME: "v1.k1.U2hlbGxv.VtYCqSy0W251D2rnLiY9_7jSyZfCSAOtmAvo8kuELpM",
    Kind.CONSOLE: "v1.k1.Q2hlbGxv.Z5SJTLOJ-EnnF6T-KpOnYSnFEwo_sKPIlPLhL_HegSg",
    Kind.ENTRY: "v1.k1.RWhlbGxv.30BeRe2fN0Fs6OUDf2Xs0mZ96znh1p6AZVH5fWUN7P8",
    Kind.LIFE: "v1.k1.TGhlbGxv.1NKjRMkDSPz01aeWmjdpxKDcTW5UHT6JBEvHXo5JXUA",
}
"""b"hello" under OLD, made with openssl. Such strings are in others' hands: they must stay valid."""


def forged(kind_of_key: Kind, payload: bytes, version: str = "v1") -> str:
    """A token as the documentation describes it, made without the code under test."""
    derived = hmac.digest(OLD.secret, b"roost/v1/" + kind_of_key.name.encode(), "sha256")
    head = f"{version}.k1.{_b64(payload)}"
    return f"{head}.{_b64(hmac.digest(derived, head.encode(), 'sha256'))}"


def _b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize("kind", Kind)
def test_tokens_stay_as_they_were_released(kind: Kind) -> None:
    assert Signer(kind, (OLD,)).sign(b"hello") == GOLDEN[kind]
    assert Signer(kind, (OLD,)).verify(GOLDEN[kind]) == b"hello"


def test_the_type_bytes_stay_as_they_were_released() -> None:
    assert {kind.name: kind.value for kind in Kind} == {
        "TICKET": b"T",
        "RECEIPT": b"R",
        "ENTRY": b"E",
        "LIFE": b"L",
        "LOGIN": b"G",
        "RESUME": b"S",
        "CONSOLE": b"C",
    }


@pytest.mark.parametrize("kind", Kind)
def test_the_form_is_the_documented_one(kind: Kind) -> None:
    assert Signer(kind, (OLD,)).sign(b"body") == forged(kind, kind.value + b"body")


@given(st.binary(max_size=600))
def test_what_was_signed_comes_back(body: bytes) -> None:
    assert TICKETS.verify(TICKETS.sign(body)) == body


def test_a_token_of_the_former_key_is_valid_until_that_key_is_removed() -> None:
    before = Signer(Kind.TICKET, (OLD,)).sign(b"x")
    rotated = Signer(Kind.TICKET, (NEW, OLD))
    after = rotated.sign(b"x")

    assert rotated.verify(before) == b"x"
    assert after.startswith("v1.k2.")
    assert Signer(Kind.TICKET, (NEW,)).verify(after) == b"x"
    with pytest.raises(TokenRefused):
        Signer(Kind.TICKET, (NEW,)).verify(before)


@pytest.mark.parametrize("made", Kind)
@pytest.mark.parametrize("asked", Kind)
def test_one_kind_never_passes_as_another(made: Kind, asked: Kind) -> None:
    token = Signer(made, (OLD,)).sign(b"x")
    if made is asked:
        assert Signer(asked, (OLD,)).verify(token) == b"x"
    else:
        with pytest.raises(TokenRefused):
            Signer(asked, (OLD,)).verify(token)


@pytest.mark.parametrize("payload", [b"", b"Rx", b"Ex", b"tx", b"\x00x"])
def test_the_type_byte_counts_even_under_the_right_key(payload: bytes) -> None:
    with pytest.raises(TokenRefused, match="another kind"):
        TICKETS.verify(forged(Kind.TICKET, payload))


def test_another_version_is_refused_even_under_the_right_key() -> None:
    with pytest.raises(TokenRefused, match="version"):
        TICKETS.verify(forged(Kind.TICKET, b"Tx", version="v2"))


@given(st.data())
def test_a_token_with_any_character_changed_is_refused(data: st.DataObject) -> None:
    token = TICKETS.sign(data.draw(st.binary(max_size=40)))
    position = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters().filter(lambda c: c != token[position]))
    with pytest.raises(TokenRefused):
        TICKETS.verify(token[:position] + other + token[position + 1 :])


@given(st.data())
def test_a_token_that_was_cut_or_grown_is_refused(data: st.DataObject) -> None:
    token = TICKETS.sign(b"user-1")
    cut = data.draw(st.integers(0, len(token) - 1))
    grown = data.draw(st.text(min_size=1, max_size=5))
    for text in (token[:cut], token[cut + 1 :], token + grown, grown + token):
        with pytest.raises(TokenRefused):
            TICKETS.verify(text)


@given(st.text(max_size=300) | st.text("v1.k=-_AT", max_size=300))
def test_malformed_input_is_refused_and_nothing_else_happens(text: str) -> None:
    with pytest.raises(TokenRefused):
        TICKETS.verify(text)
    with pytest.raises(TokenRefused):
        TICKETS.verify(f"v1.k1.{text}")


def test_an_endless_token_is_refused_before_any_work() -> None:
    with pytest.raises(TokenRefused, match="malformed"):
        TICKETS.verify("v1.k1." + "A" * MAX_TOKEN_CHARS)


def test_a_body_that_would_make_an_endless_token_is_not_signed() -> None:
    with pytest.raises(InvalidInput, match="2048"):
        TICKETS.sign(bytes(MAX_TOKEN_CHARS))


def test_a_signer_needs_a_key() -> None:
    with pytest.raises(InvalidInput):
        Signer(Kind.TICKET, ())


def test_a_key_list_keeps_its_order() -> None:
    text = f"k2:{b64encode(NEW.secret).decode()}, k1:{b64encode(OLD.secret).decode()}"
    assert parse_keys(text) == (NEW, OLD)


SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQh"
SHORT = "c2hvcnRzaG9ydA=="


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("", "secret"),
        (SECRET, SECRET),
        (f"k1:{SECRET}, ", SECRET),
        (f"k1:{SECRET}!", SECRET),
        (f"k1:{SHORT}", SHORT),
        (f"k1:{SECRET},k1:{SECRET}", SECRET),
        (f"a b:{SECRET}", SECRET),
        (f"{'k' * 33}:{SECRET}", SECRET),
        (f":{SECRET}", SECRET),
        (f"{SECRET}:k1", SECRET),
        (f"k1:{SECRET}é", SECRET),
        (f"k1={SECRET}", SECRET),
    ],
)
def test_a_fault_in_a_key_list_is_named_without_its_secret(text: str, secret: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_keys(text)
    assert secret not in f"{caught.value!r} {caught.value} {caught.value.hint}"


@given(st.text(max_size=60))
def test_a_key_list_is_read_or_refused(text: str) -> None:
    try:
        assert parse_keys(text)
    except InvalidInput:
        pass


def test_a_key_does_not_show_its_secret() -> None:
    assert repr(OLD) == "MasterKey(kid='k1', secret=…)"
    assert str(OLD.secret) not in str(OLD)
