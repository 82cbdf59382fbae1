"""What people carry: each kind stands only for itself, its user and its world."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import TokenRefused
from roost.core.passes import BASE, Passes, Receipt, ResumePass, Ticket, peek_user, sign_entry, sign_login
from roost.core.signing import MAX_TOKEN_CHARS, MasterKey

OLD, NEW, TICKETS = (MasterKey(kid, kid.encode() * 16) for kid in ("old", "new", "tkt"))
PASSES = Passes((OLD,), (TICKETS,))
RECEIPT = Receipt("main", "ann", 1_700_000_000_000_000, 1_700_000_000_000_001, ":vip", 12)
TICKET = Ticket("main", "ann", "6f1c2a9e-tid", 17)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=32)


@given(TEXT, TEXT, TEXT, st.integers(0, 2**53))
def test_whatever_was_signed_is_read_as_it_was(world: str, user: str, text: str, number: int) -> None:
    receipt, ticket = Receipt(world, user, number, number, text, number), Ticket(world, user, text, number)
    assert PASSES.receipt(PASSES.sign_receipt(receipt), world, user) == receipt
    assert PASSES.ticket(PASSES.sign_ticket(ticket), world) == ticket
    signature = sign_entry((OLD,), user=user, world=world, class_=text, now=100.0, ttl_s=10)
    assert PASSES.entry(signature, world, user, 109.9).class_ == text


def test_the_class_is_base_unless_another_is_signed() -> None:
    assert PASSES.entry(sign_entry((OLD,), user="ann"), "main", "ann", 0.0).class_ == BASE


@pytest.mark.parametrize(
    ("world", "user", "now"),
    [("main", "bob", 5.0), ("eu-1", "ann", 5.0), ("main", "ann", 10.0), ("main", "ANN", 5.0)],
)
def test_a_signature_is_for_one_user_in_one_world_until_then(world: str, user: str, now: float) -> None:
    signature = sign_entry((OLD,), user="ann", now=0.0, ttl_s=10)
    assert PASSES.entry(signature, "main", "ann", 9.9).class_ == BASE
    with pytest.raises(TokenRefused):
        PASSES.entry(signature, world, user, now)


def test_a_party_is_what_was_signed() -> None:
    signature = sign_entry((OLD,), user="ann", party="p-1", size=3, now=0.0)
    entry = PASSES.entry(signature, "main", "ann", 1.0)
    assert (entry.party, entry.size) == ("p-1", 3)


def test_none_can_stand_for_another() -> None:
    same = Passes((OLD,), (OLD,))  # also where all are signed with one key
    entry, receipt = sign_entry((OLD,), user="ann"), same.sign_receipt(RECEIPT)
    ticket = same.sign_ticket(TICKET)
    for wrong in (entry, receipt):
        with pytest.raises(TokenRefused):
            same.ticket(wrong, "main")
    for wrong in (entry, ticket):
        with pytest.raises(TokenRefused):
            same.receipt(wrong, "main", "ann")
    for wrong in (receipt, ticket):
        with pytest.raises(TokenRefused):
            same.entry(wrong, "main", "ann", 0.0)


def test_a_receipt_and_a_ticket_are_for_one_world() -> None:
    receipt, ticket = PASSES.sign_receipt(RECEIPT), PASSES.sign_ticket(TICKET)
    for world, user in (("eu-1", "ann"), ("main", "bob")):
        with pytest.raises(TokenRefused):
            PASSES.receipt(receipt, world, user)
    with pytest.raises(TokenRefused):
        PASSES.ticket(ticket, "eu-1")


def test_keys_rotate() -> None:
    both, new = Passes((NEW, OLD), (TICKETS,)), Passes((NEW,), (TICKETS,))
    old = PASSES.sign_receipt(RECEIPT)
    assert both.receipt(old, "main", "ann") == RECEIPT
    with pytest.raises(TokenRefused):
        new.receipt(old, "main", "ann")
    assert new.receipt(both.sign_receipt(RECEIPT), "main", "ann") == RECEIPT


@given(st.integers(0, 10_000), st.integers(1, 63))
def test_no_bit_of_a_ticket_can_be_changed(at: int, by: int) -> None:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    token = PASSES.sign_ticket(TICKET)
    at %= len(token)
    changed = alphabet[(alphabet.find(token[at]) + by) % 64]
    forged = token[:at] + changed + token[at + 1 :]
    if forged != token:
        with pytest.raises(TokenRefused):
            PASSES.ticket(forged, "main")


def test_a_ticket_can_be_looked_at_without_its_key() -> None:
    assert peek_user(PASSES.sign_ticket(TICKET)) == "ann"
    for other in ("", "x", "a.b.c.d", "v1.k." + "A" * MAX_TOKEN_CHARS + ".m", PASSES.sign_receipt(RECEIPT)):
        assert peek_user(other) == ""


def test_the_longest_ids_fit_into_a_token() -> None:
    long = Receipt("w" * 32, "é" * 64, 2**53, 2**53, ":" + "c" * 16, 2**31)
    assert PASSES.receipt(PASSES.sign_receipt(long), long.world, long.user) == long


def test_a_login_token_is_good_until_its_end_and_carries_what_was_signed() -> None:
    token = sign_login((OLD,), user="ann", types=("entity", "pets"), nickname="A", now=0.0, ttl_s=10)
    login = PASSES.login(token, 9.9)
    assert (login.user, login.types, login.nickname) == ("ann", ("entity", "pets"), "A")
    with pytest.raises(TokenRefused, match="expired"):
        PASSES.login(token, 10.0)


def test_a_resume_token_names_a_session_until_its_end() -> None:
    resume = ResumePass("ann", "s-1", 10.0, ("entity",), "A")
    assert PASSES.resume(PASSES.sign_resume(resume), 9.9) == resume
    with pytest.raises(TokenRefused, match="expired"):
        PASSES.resume(PASSES.sign_resume(resume), 10.0)


def test_nothing_else_logs_in_or_resumes() -> None:
    same = Passes((OLD,), (OLD,))
    login, resume = sign_login((OLD,), user="ann"), same.sign_resume(ResumePass("ann", "s", 2e9))
    others = [sign_entry((OLD,), user="ann"), same.sign_receipt(RECEIPT), same.sign_ticket(TICKET)]
    for wrong in (resume, *others, sign_login((NEW,), user="ann")):
        with pytest.raises(TokenRefused):
            same.login(wrong, 0.0)
    for wrong in (login, *others):
        with pytest.raises(TokenRefused):
            same.resume(wrong, 0.0)
    with pytest.raises(TokenRefused):
        same.ticket(login, "main")
