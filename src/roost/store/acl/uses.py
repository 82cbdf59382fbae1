"""What each part of a capability does in the store: its scripts, its plain commands, whose feed it follows.

The keys of a script are in its header and the commands in its source; nothing of both is repeated here.
`tests/architecture/test_store_rights.py` holds that every script and plain command in the source is named.
"""

from __future__ import annotations

from dataclasses import dataclass

from roost.store.acl.patterns import Patterns
from roost.store.acl.rights import Rights, plain_rights, script_rights, union
from roost.store.keys import PlainKey
from roost.store.keys.tokens import ENDED_SESSIONS, TOKENS
from roost.store.keys.waitingroom import STATUS


@dataclass(frozen=True, slots=True)
class Use:
    folder: str
    """The capability whose source does it."""
    group: str = ""
    """Whose keys `plain`, `given`, `follows` and `leads` are about; by default those of the folder."""
    scripts: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    """Keys that a script writes and its header leaves to the caller."""
    plain: tuple[str, ...] = ()
    """`COMMAND key`, or a command alone."""
    outside: tuple[tuple[str, PlainKey, str], ...] = ()
    """Command, key outside of all scopes, and what may follow its name."""
    follows: bool = False
    leads: bool = False
    jobs: tuple[str, ...] = ()
    """What it leads within the scope, beside the scope itself."""

    def rights(self, patterns: Patterns) -> Rights:
        group = self.group or self.folder
        found = [script_rights(self.folder, name, patterns) for name in self.scripts]
        found += [Rights(writes=frozenset({patterns.of(group, name)})) for name in self.given]
        found += [_plain(words, group, patterns) for words in self.plain]
        found += [plain_rights(verb, patterns.plain(key) + each) for verb, key, each in self.outside]
        found += [_following(group, patterns)] if self.follows else []
        found += [_leading(patterns.of(group, "leader"), patterns)] if self.leads else []
        found += [_leading(patterns.job(group, job), patterns) for job in self.jobs]
        return union(found)


def _plain(words: str, group: str, patterns: Patterns) -> Rights:
    command, _, family = words.partition(" ")
    return plain_rights(command, patterns.of(group, family)) if family else Rights(commands=_named(command))


def _named(command: str) -> frozenset[str]:
    return frozenset({command.lower()})


_LISTENING = frozenset({"xrange", "xrevrange", "ssubscribe", "sunsubscribe"})


def _following(group: str, patterns: Patterns) -> Rights:
    """`store/feed.py` reads, `store/pubsub.py` listens."""
    feed = frozenset({patterns.of(group, "feed")})
    bell = frozenset({patterns.of(group, "bell")})
    return Rights(reads=feed, channels=bell, commands=_LISTENING)


def _leading(pattern: str, patterns: Patterns) -> Rights:
    verbs = union(script_rights("store", name, patterns) for name in ("leader_campaign", "leader_resign"))
    return verbs | Rights(writes=frozenset({pattern}))


MEMBER = Use("discovery", scripts=("register", "heartbeat", "remove", "get", "snapshot"), follows=True)
"""One who is in discovery, and looks at others."""
LOOKER = Use("discovery", scripts=("get", "snapshot"), follows=True)
CHECKER = Use("discovery", scripts=("vote", "snapshot"), plain=("HGETALL votes", "ZRANGE checkers"))
OVERRIDE = Use("discovery", scripts=("override",))
SWEEP = Use(
    "discovery",
    scripts=("sweep", "end_silent", "repair", "repair_service", "forget", "get"),
    plain=("SMEMBERS services",),
)
SPARE_SWEEP = Use("discovery", plain=("HGET meta", "ZCARD leases"), jobs=("sweep",))

DESK = Use("waitingroom", scripts=("enter", "status", "touch", "leave", "look", "board"), follows=True)
GOVERN = Use("waitingroom", scripts=("govern", "drop", "leave"))
DOOR = Use("waitingroom", scripts=("consume", "release", "report", "board"))
WORLD_LEADER = Use(
    "waitingroom",
    scripts=("admit", "sync", "board"),
    outside=(("HSET", STATUS, "*"), ("EXPIRE", STATUS, "*")),
    leads=True,
)

HOMES = Use(
    "binding",
    scripts=("board",),
    plain=("HMGET users", "ZRANGE binders", "LRANGE moves", "XREVRANGE feed"),
    follows=True,
)
HOME = Use("binding", plain=("HMGET users",))
RESOLVE = Use("binding", scripts=("resolve", "bind"), plain=("HMGET users",), follows=True)
RELEASE = Use("binding", scripts=("release",), plain=("HMGET users",))
HOLD = Use(
    "binding",
    scripts=(
        *("append", "beat", "bury", "commit", "freeze", "reassert"),
        *("release", "renew", "repair", "trim"),
    ),
    plain=("HMGET users", "XRANGE journal"),
)
PARTITION_LEADER = Use("binding", scripts=("sync", "tick", "replace", "board", "moves_note"), leads=True)

DRAIN_DESK = Use(
    "binding",
    "drain",
    scripts=("job_start", "job_turn", "job_running"),
    plain=("HMGET job", "HGET busy", "ZREVRANGE jobs", "HGETALL reports"),
    follows=True,
)
WITNESS = Use("binding", "drain", scripts=("job_running", "job_tell"))
DRAIN_LEADER = Use(
    "binding",
    "drain",
    scripts=("job_save", "job_running"),
    plain=("HMGET job", "ZREVRANGE jobs", "ZRANGE moved", "HGETALL reports"),
    follows=True,
    leads=True,
)

SHARDS = Use("lanes", scripts=("shards",), plain=("GET index",))
PLACEMENT = Use("lanes", "placement", scripts=("placement",), plain=("HGETALL placement",), follows=True)
PLACEMENT_LOOK = Use("lanes", "placement", plain=("HGETALL placement",))
OWNER = Use(
    "lanes",
    scripts=("append", "campaign", "look", "resign", "take_over", "snapshot", "index_put"),
    given=("log", "tail"),
    plain=("XRANGE log", "XTRIM log", "HGETALL snapshot", "GET index", "WAIT", "WAITAOF"),
)

TOKENS_DESK = Use(
    "tokens",
    outside=(
        *((verb, TOKENS, "") for verb in ("HGETALL", "HLEN", "HSET", "HDEL")),
        *((verb, ENDED_SESSIONS, "") for verb in ("ZRANGE", "ZADD", "ZREMRANGEBYSCORE", "ZREMRANGEBYRANK")),
    ),
)
TOKENS_CHECK = Use("tokens", outside=(("HGETALL", TOKENS, ""), ("ZRANGE", ENDED_SESSIONS, "")))
ALERTS = Use("alerts", scripts=("claim", "settle"))
AUDIT = Use("audit", scripts=("append",), plain=("XRANGE feed", "XREVRANGE feed"), follows=True)
FORWARD = Use("forward", scripts=("mark",), plain=("HGET marks",), leads=True)
FEEDS = tuple(
    Use("forward", group, follows=True)
    for group in ("discovery", "waitingroom", "binding", "drain", "placement", "audit")
)
"""All that people hear of."""
LEADERS = tuple(
    Use("gateway", group, plain=("HMGET leader",)) for group in ("waitingroom", "binding", "drain")
)
