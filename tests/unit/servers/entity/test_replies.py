from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from roost.servers.entity.replies import LARGEST, MOST_BYTES, MOST_REPLIES, Replies, Reply
from roost.wire.answer import digest_of
from roost.wire.codes import Code


def reply(text: str = "x") -> Reply:
    return Reply(Code.OK, text.encode())


def test_what_its_sender_has_is_forgotten() -> None:
    replies = Replies()
    for sequence in range(1, 6):
        replies.remember(sequence, reply(str(sequence)))

    replies.forget_below(4)

    assert [replies.get(n) for n in range(1, 6)] == [None, None, None, reply("4"), reply("5")]


def test_the_memory_is_bounded_in_number_and_bytes() -> None:
    replies = Replies()
    for sequence in range(1, MOST_REPLIES * 2):
        replies.remember(sequence, reply())
    assert len(replies) == MOST_REPLIES

    for sequence in range(MOST_REPLIES * 2, MOST_REPLIES * 4):
        replies.remember(sequence, reply("x" * 8000))
        assert len(replies.pack()) <= MOST_BYTES + 10 * MOST_REPLIES
    assert len(replies) == MOST_REPLIES


def test_what_is_not_kept_whole_is_known_by_its_digest() -> None:
    replies, large = Replies(), Reply(Code.FAILED, b"x" * (LARGEST + 1))
    replies.remember(1, large)
    for sequence in range(2, 50):
        replies.remember(sequence, reply(str(sequence) * 4000))

    kept = Replies.unpack(replies.pack())

    for sequence, whole in ((1, large), (2, reply("2" * 4000))):
        told = kept.get(sequence)
        assert told is not None
        assert told.code is Code.REFUSED
        said = msgspec.msgpack.decode(told.payload)
        assert (said["executed"], said["digest"]) == (True, digest_of(whole.code, whole.payload))
    assert kept.get(49) == reply("49" * 4000)


def test_a_memory_of_short_forms_alone_has_room() -> None:
    replies = Replies()
    for sequence in range(MOST_REPLIES):
        replies.remember(sequence, reply("x" * (LARGEST + 1)))
    assert len(replies) == MOST_REPLIES
    assert len(replies.pack()) < MOST_BYTES


@given(
    st.dictionaries(
        st.integers(1, 1000), st.tuples(st.sampled_from(list(Code)), st.binary(max_size=50)), max_size=30
    )
)
def test_what_is_packed_is_unpacked(kept: dict[int, tuple[Code, bytes]]) -> None:
    replies = Replies()
    for sequence, (code, payload) in sorted(kept.items()):
        replies.remember(sequence, Reply(code, payload))

    again = Replies.unpack(replies.pack())

    assert {n: again.get(n) for n in kept} == {n: Reply(*pair) for n, pair in kept.items()}


@given(st.binary(max_size=100))
def test_garbage_is_as_good_as_nothing(garbage: bytes) -> None:
    assert len(Replies.unpack(garbage)) < 100
