"""The rules of binding, without I/O."""

from __future__ import annotations

import zlib
from typing import Final

from roost.api import limits
from roost.core.errors import InvalidInput
from roost.core.ids import check_id, check_name
from roost.core.owner import Owner

SERVER_TYPE: Final = "entity"
"""Service type of the servers that hold users, where nobody names one."""
LEAST_LOADED: Final = "least_loaded"
"""The strategy of the store itself: the fewest users of two servers."""
STRATEGIES: Final = (LEAST_LOADED, *limits.STRATEGIES)
MAX_PARTITIONS = 64
MAX_EPOCH = 2**53 - 2**20
"""What the store's scripts count exactly, with room to rise."""
MAX_TYPES = 32


def partition_of(type_: str, user: str, count: int) -> int:
    """Which of `count` partitions a user of a type is in; the same in every process and version."""
    return zlib.crc32(f"{type_}:{user}".encode()) % count if count > 1 else 0


def capacity_share(capacity: int, partitions: int) -> int:
    """What one partition counts of a server's seats, rounded up: the server itself refuses beyond the sum."""
    return -(-capacity // partitions)


def parse_types(text: str) -> tuple[str, ...]:
    """Read `entity,room`: the service types whose servers hold users."""
    types = tuple(check_name(part.strip(), "type") for part in text.split(","))
    if len(set(types)) != len(types):
        raise InvalidInput("a type is named twice")
    if len(types) > MAX_TYPES:
        raise InvalidInput(f"{len(types)} types are too many, at most {MAX_TYPES}")
    return types


def parse_versions(text: str) -> dict[str, str]:
    """Read `entity=2.0,room=1.1`: the version that a server of a type must have to get users placed."""
    versions: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        type_, _, version = (word.strip() for word in part.partition("="))
        check_name(type_, "type")
        if type_ in versions or not version:
            raise InvalidInput(f"{type_} needs one version: {type_}=2.0")
        versions[type_] = check_version(version, limits.MAX_TEXT)
    return versions


def check_user(type_: str, user: str) -> None:
    check_name(type_, "type")
    check_id(user, "userId")


def check_owner(owner: Owner) -> None:
    check_name(owner.server_id, "serverId")
    if not (owner.life.isascii() and owner.life.isdecimal() and len(owner.life) <= 16):
        raise InvalidInput("life must be the number that discovery gave", hint="register the server first")


def check_epoch(epoch: int, what: str = "epoch") -> int:
    if not 0 <= epoch <= MAX_EPOCH:
        raise InvalidInput(f"{what} is {epoch}, must be 0 to {MAX_EPOCH}")
    return epoch


def check_version(version: str, most: int) -> str:
    if len(version) > most or any(ord(c) < 32 or ord(c) == 127 for c in version):
        raise InvalidInput(f"version has at most {most} characters, none of them control characters")
    return version
