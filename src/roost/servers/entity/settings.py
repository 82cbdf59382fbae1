"""The settings of an entity server: `ROOST_ENTITY__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.setting import check_fields, setting

REFERENCE = "roost.servers.entity.reference:Reference"


@dataclass(frozen=True, slots=True)
class EntitySettings:
    host: str = setting("127.0.0.1", "Address to listen on. Profile dev allows loopback only.")
    port: int = setting(8430, "Port for gates; its metrics are on the port 1000 above.", most=64535)
    class_name: str = setting(
        REFERENCE,
        "The class of its users, module:Class; modules of the folder it is started in are found. The default "
        "is the reference; beside it are JournalReference and WriteThroughReference.",
    )
    capacity: int = setting(10_000, "Users that it holds at once, connected or cached. Beyond it says FULL.")
    idle_seconds: int = setting(
        900, "Without a message for so long a user is written, released, and may live elsewhere next time."
    )
    queue: int = setting(
        1024, "Messages of one user that may wait for their turn; those beyond are refused as OVERLOADED."
    )
    handle_ms: int = setting(
        5000, "How long `handle`, a timer or a login hook may wait for something before it is cancelled."
    )
    load_ms: int = setting(5000, "How long `load` may take, and each message of a replay.")
    stall_ms: int = setting(
        5000,
        "How long messages wait for a state that cannot be written in its window, before they are refused as "
        "OVERLOADED. Nothing is acknowledged meanwhile.",
    )
    flush_batch: int = setting(200, "States that are written together at most.", most=10_000)
    stop_ms: int = setting(10_000, "How long a clean stop may take to write and release everybody.")
    reassert_seconds: int = setting(
        30,
        "How often the map is told again who lives here, besides after every lost connection to the store.",
    )

    database_lease_seconds: int = setting(
        60,
        "How long it goes on with its users, by a lease in the database, after the store last answered. "
        "Longer: an outage of the store is survived for longer; but where others reach the store and this "
        "server does not, its users who connect elsewhere wait for so long. 0: it stops with its "
        "lease in the store.",
        least=0,
        most=3600,
    )
    retire_quiet_seconds: int = setting(
        5,
        "A server that was emptied by a drain leaves when nobody came to it for so long: gates that look for "
        "a user by an old route are sent on until then.",
        most=3600,
    )

    def faults(self) -> list[str]:
        return check_fields(self)
