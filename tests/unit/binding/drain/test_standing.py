"""A server as discovery and the map see it together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from roost.api.discovery import Instance
from roost.binding.drain.standing import standings_of
from roost.binding.model import PartitionBoard
from roost.binding.service import Bindings


def board(*, is_open: bool) -> PartitionBoard:
    """One partition, in which 501 is alive."""
    return PartitionBoard.read(["clock_ms", "5"], 0, ["501", f"7\t{int(is_open)}\t0\t9\t0\t1.0", "0"])


@pytest.mark.parametrize(
    ("is_open", "willing", "is_closed"),
    [([True, True], True, False), ([True, False], False, False), ([False, False], False, True)],
)
async def test_a_server_is_closed_when_every_partition_knows_it(
    is_open: list[bool], willing: bool, is_closed: bool
) -> None:
    """Emptied before, it would leave while a partition still places users there."""

    async def of(one: bool) -> PartitionBoard:
        return board(is_open=one)

    partitions = [SimpleNamespace(board=lambda _, one=one: of(one)) for one in is_open]
    bindings: Any = SimpleNamespace(partitions=partitions)
    instance = Instance(
        type="entity",
        group="main",
        server_id="501",
        instance_id="i1",
        life="7",
        status="ready",
        accepting=True,
        last_heartbeat="",
    )
    found = standings_of([instance], await Bindings.servers(bindings, "entity"))["501"]
    assert (found.willing, found.is_closed) == (willing, is_closed)
