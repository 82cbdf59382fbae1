"""The user of each role can do what the role does, and nothing else: asked of a real server, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from roost.cli.doctor import examine
from roost.core.errors import StoreAccessDenied
from roost.lanes.scripts import ShardScripts
from roost.store import scopes
from roost.store.acl.document import document
from roost.store.acl.files import OWN_USERS, committed
from roost.store.acl.patterns import Patterns
from roost.store.acl.proof import HARMFUL, SOMEBODY_ELSE, access, all_keys, needed, reading, sample, writing
from roost.store.acl.roles import ROLES, rights_of, user_of
from roost.store.inspect import Finding
from roost.testing import RunningServer, open_store, run_valkey
from tests.acceptance.conftest import Home
from tests.acceptance.queue import settings_for
from tests.acceptance.store_users import DIGEST, EVERYTHING, denials, permit, permit_roles, url_of

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy" / "redis"
KEYS = list(all_keys(Patterns()))


@pytest.fixture(scope="module")
def permitted() -> Iterator[RunningServer]:
    """A server that knows every role's user; its tests only ask."""
    with run_valkey() as server:
        permit_roles([server])
        yield server


def may(server: RunningServer, role: str, command: Sequence[str]) -> bool:
    """What the server says that it would answer, with nothing carried out."""
    return bool(server.command_reply("ACL", "DRYRUN", user_of(role), *command) == b"OK")


@pytest.mark.parametrize("role", ROLES)
def test_every_cell_of_the_table_is_what_a_server_answers(permitted: RunningServer, role: str) -> None:
    rights = rights_of(role, Patterns())
    found = {}
    for _, pattern in KEYS:
        can_read, can_write = (
            may(permitted, role, command(sample(pattern))) for command in (reading, writing)
        )
        found[pattern] = "RW" if can_write else "R" if can_read else ""

    assert found == {pattern: access(rights, pattern) for _, pattern in KEYS}


@pytest.mark.parametrize("role", ROLES)
def test_what_harms_and_what_is_not_ours_is_refused(permitted: RunningServer, role: str) -> None:
    of_others = (reading(SOMEBODY_ELSE), writing(SOMEBODY_ELSE), ("SSUBSCRIBE", SOMEBODY_ELSE))

    assert [command for command in (*HARMFUL, *of_others) if may(permitted, role, command)] == []


def test_no_role_reaches_into_a_capability_that_it_has_no_part_in(permitted: RunningServer) -> None:
    """Some that would hurt most, by name: the table above could be wrong on both sides."""
    assert not may(permitted, "gateway", ("HSET", "roost:leader:shard:{o1}", "holder", "me"))
    assert not may(permitted, "gateway", ("XADD", "orders:log:{o1}", "*", "c", "x"))
    assert not may(permitted, "gameserver", ("HGETALL", "roost:tokens"))
    assert not may(permitted, "gate", ("HSET", "drain:job:{drain}:7", "state", "done"))
    assert not may(permitted, "entity", ("HSET", "queue:world:{main}", "mode", "off"))
    assert not may(permitted, "orders", ("HSET", "bind:users:{b1}:entity:ann", "s", "501"))
    assert not may(permitted, "manager", ("HSET", "roost:tokens", "id", "x"))
    assert not may(permitted, "doctor", ("SET", "roost:format", "4"))


def test_another_namespace_is_out_of_reach(permitted: RunningServer) -> None:
    assert not may(permitted, "gateway", ("GET", "blue:roost:format"))
    blue = [rule for rule in rights_of("gateway", Patterns("blue", "dir:")).rules() if rule[0] in "~%&"]
    assert {rule for rule in blue if not rule.lstrip("~%R&").startswith("blue:")} == set()
    assert "~blue:dir:index:{sd}" in blue


def test_the_committed_files_are_what_the_source_makes() -> None:
    for name, text in committed(Patterns()).items():
        assert (DEPLOY / name).read_text() == text, "run python -m roost.store.acl.files deploy/redis"


def test_the_document_is_what_the_source_makes() -> None:
    assert (ROOT / "docs" / "acl.md").read_text() == document(), "run python -m roost.store.acl.document"


def test_a_server_starts_with_the_committed_configuration_and_users(tmp_path: Path) -> None:
    closed, *others = (DEPLOY / "users.acl").read_text().splitlines(keepends=True)
    assert closed.startswith("user default off")
    users = tmp_path / "users.acl"
    users.write_text("".join([EVERYTHING, *others]))  # the default user is the test's own
    config = (DEPLOY / "valkey.conf").read_text().replace("/etc/valkey/users.acl", str(users))
    lines = [line.split(" ", 1) for line in config.splitlines() if line and not line.startswith("#")]
    with run_valkey(options=[word for name, value in lines for word in (f"--{name}", value)]) as server:
        known = {user.decode() for user in server.command_reply("ACL", "USERS")}
        assert known == {*OWN_USERS, *map(user_of, ROLES)}
        for name, value in lines:
            assert server.command_reply("CONFIG", "GET", name)[1].decode() == value


@pytest.mark.parametrize("role", ["gateway", "gate", "doctor"])
async def test_the_doctor_finds_the_rights_of_the_role_and_no_more(
    permitted: RunningServer, tmp_path: Path, role: str
) -> None:
    found = await user_finding(permitted, tmp_path, role)
    assert (found.state, found.found) == ("ok", f"{user_of(role)}: what a {role} needs, and no more")


async def test_the_doctor_leaves_no_trace_in_the_log_of_refusals(
    valkey: RunningServer, tmp_path: Path
) -> None:
    permit_roles([valkey])
    async with open_store(valkey.url):
        pass  # marked with its format: the doctor's user could not
    await user_finding(valkey, tmp_path, "doctor")
    assert denials([valkey]) == []


async def test_the_doctor_says_what_is_missing(valkey: RunningServer, tmp_path: Path) -> None:
    rules = [rule for rule in rights_of("gate", Patterns()).rules() if rule != "~bind:users:{b*}:*"]
    permit([valkey], "roost-gate", ["reset", "on", f"#{DIGEST}", *rules, "-hget"])
    found = await user_finding(valkey, tmp_path, "gate")
    assert found.state == "fail"
    assert found.found == "roost-gate lacks what a gate needs: write bind:users:{bx}:x, HGET"
    assert "roost acl --role gate" in found.advice


async def test_the_doctor_says_what_is_too_much(valkey: RunningServer, tmp_path: Path) -> None:
    rules = [*rights_of("gate", Patterns()).rules(), "+flushall", "%R~roost:tokens"]
    permit([valkey], "roost-gate", ["reset", "on", f"#{DIGEST}", *rules])
    found = await user_finding(valkey, tmp_path, "gate")
    assert found.state == "warn"
    assert found.found == "roost-gate may do more than a gate needs: FLUSHALL, read roost:tokens"


@pytest.mark.parametrize(("profile", "state"), [("dev", "ok"), ("lan", "warn")])
async def test_a_user_who_may_do_everything_is_told_of_outside_dev(
    permitted: RunningServer, tmp_path: Path, profile: str, state: str
) -> None:
    settings = replace(settings_for(tmp_path, profile), store=permitted.url)
    found = {finding.what: finding for finding in await examine(settings)}["store user"]
    assert found.state == state
    assert "rights of an administrator" in found.found


async def test_the_doctor_can_be_asked_for_a_role(permitted: RunningServer, tmp_path: Path) -> None:
    settings = replace(settings_for(tmp_path), store=url_of("doctor", permitted.url))
    found = {finding.what: finding for finding in await examine(settings, "gateway")}["store user"]
    assert found.state == "fail"


async def user_finding(server: RunningServer, folder: Path, role: str) -> Finding:
    settings = replace(settings_for(folder), store=url_of(role, server.url))
    return {finding.what: finding for finding in await examine(settings)}["store user"]


@pytest.mark.parametrize("role", [role for role in ROLES if role != "doctor"])
async def test_a_pattern_that_is_taken_away_is_missed(permitted: RunningServer, role: str) -> None:
    """Red once, for each key of each role: without it the server refuses what the role does."""
    rights = rights_of(role, Patterns())
    for pattern in sorted(rights.writes | rights.reads):
        less = replace(rights, writes=rights.writes - {pattern}, reads=rights.reads - {pattern})
        permit([permitted], "roost-less", ["reset", "on", *less.rules()])
        refused = [
            command
            for command in needed(rights)
            if pattern_in(command, pattern)
            and permitted.command_reply("ACL", "DRYRUN", "roost-less", *command) != b"OK"
        ]
        assert refused, pattern


def pattern_in(command: Sequence[str], pattern: str) -> bool:
    return command[0].startswith("EVALSHA") and command[-1] == sample(pattern)


async def test_a_refusal_from_within_a_script_is_access_denied(valkey: RunningServer) -> None:
    rules = [*rights_of("manager", Patterns()).rules(), "-hset"]
    permit([valkey], "roost-manager", ["reset", "on", f"#{DIGEST}", *rules])
    async with open_store(url_of("manager", valkey.url)) as store:
        with pytest.raises(StoreAccessDenied):
            await store.leader(scopes.world("main"), "manager").campaign()


async def test_a_script_that_only_reads_runs_where_its_user_may_only_read(permitted: RunningServer) -> None:
    """The lease of a shard: a gateway shows who holds it, and could not take it."""
    async with open_store(url_of("gateway", permitted.url)) as store:
        shard = ShardScripts(store.library, store.keys, scopes.shard(1))
        assert (await shard.shards(max_step_ms=1000)).server == ""
        with pytest.raises(StoreAccessDenied):
            await store.leader(scopes.shard(1), "gateway").campaign()


def test_acl_prints_users_with_passwords_that_it_keeps(home: Home) -> None:
    folder = home.folder / "users"
    first, again = (home.run("acl", "--secrets", str(folder)) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    assert "user default off" in first.stdout
    assert {file.name for file in folder.iterdir()} == {*map(user_of, ROLES), *OWN_USERS} - {"default"}
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_acl_prints_commands_for_one_role_and_refuses_a_role_that_is_none(home: Home) -> None:
    printed = home.run("acl", "--role", "gate", "--commands", ROOST_NAMESPACE="blue").stdout
    assert printed.startswith("ACL SETUSER roost-gate reset off")
    assert "~blue:bind:users:{b*}:*" in printed
    assert "no role nobody" in home.run("acl", "--role", "nobody").stderr
