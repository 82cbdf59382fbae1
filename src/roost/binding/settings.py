"""The settings of binding: `ROOST_BINDING__…`, the section `[binding]` of the file."""

from __future__ import annotations

from dataclasses import dataclass

from roost.binding.rules import (
    LEAST_LOADED,
    MAX_PARTITIONS,
    SERVER_TYPE,
    STRATEGIES,
    parse_types,
    parse_versions,
)
from roost.core.lease import MIN_TTL_MS
from roost.core.setting import check_fields, checked, setting


@dataclass(frozen=True, slots=True)
class BindingSettings:
    """Every process of one Roost needs the same values: each sends its own to the store with every call."""

    types: str = setting(
        SERVER_TYPE,
        "Service types whose servers hold users, a comma list: entity,room. The leader brings their servers "
        "from discovery.",
    )
    partitions: int = setting(
        1,
        "Parts that the users are spread over, each in one slot of a cluster with its own leader. 1 on one "
        "primary; 4 times the primaries on a cluster. Changing it places every user anew.",
        most=MAX_PARTITIONS,
    )
    lease_ms: int = setting(
        6000,
        "How long an entity server is alive without a beat. Longer: a dead one's users wait longer; shorter: "
        "a busy one loses its users.",
        least=MIN_TTL_MS,
        most=600_000,
    )
    beat_ms: int = setting(
        2000, "Time between two beats of an entity server to each partition.", least=100, most=60_000
    )
    idle_seconds: int = setting(
        86_400,
        "A binding that its owner has not named for so long is released. Servers release their idle users "
        "sooner by themselves; this is for those that never came. 0: never.",
        least=0,
        most=31_536_000,
    )
    replace_per_second: int = setting(
        200,
        "Users of an ended server that the leader places anew in a second, in each partition. Those who ask "
        "are placed at once, whatever this says.",
        most=10_000,
    )
    slow_start_seconds: int = setting(
        30,
        "How long a new server yields to others, at first nine times out of ten. 0: it does not.",
        least=0,
        most=3600,
    )
    strategy: str = setting(
        LEAST_LOADED,
        "Who takes a user that has no home: least_loaded (the store compares two servers and takes the one "
        "with fewer users), or a strategy of balancing such as consistent_hash.",
        choices=STRATEGIES,
    )
    versions: str = setting(
        "",
        "Version that a server must have to get users who have no home, by service type: "
        "entity=2.0,room=1.1. Whoever has a home keeps it, whatever its version. Empty, or a type that is "
        "not named: any.",
    )

    move_block_ms: int = setting(
        500,
        "How long a user who is moved to another server may wait for it. Beyond it they go on where they "
        "were, and are tried again later.",
        least=20,
        most=30_000,
    )
    move_mark_ms: int = setting(
        3000,
        "How long the mark of a move holds when its server dies. After that whoever asks for the user gives "
        "them back, or places them.",
        least=100,
        most=60_000,
    )
    move_quiesce_ms: int = setting(
        1000,
        "How long a move waits for the message that the user is being served, and for the write before it. "
        "Nobody is blocked meanwhile.",
        least=10,
        most=60_000,
    )
    drain_rate: int = setting(
        100,
        "Users that a drain moves off one server in a second, at most, where nobody says otherwise. It goes "
        "slower by itself where the database or the moves are slow.",
        least=1,
        most=10_000,
    )
    drain_deadline_seconds: int = setting(
        300,
        "When a drain moves users all the same whose class says that they cannot move now.",
        least=0,
        most=86_400,
    )

    def faults(self) -> list[str]:
        faults = check_fields(self)
        checked(faults, "types", parse_types, self.types)
        checked(faults, "versions", parse_versions, self.versions)
        if self.beat_ms * 2 > self.lease_ms:
            faults.append(f"beat_ms is {self.beat_ms}, at most half of lease_ms ({self.lease_ms}) is useful")
        if self.move_block_ms > self.move_mark_ms:
            faults.append(
                f"move_block_ms is {self.move_block_ms}, the mark holds {self.move_mark_ms} ms (move_mark_ms)"
            )
        return faults
