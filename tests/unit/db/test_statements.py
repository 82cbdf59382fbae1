"""What runs on each database: the rules are in the text of the statements."""

from __future__ import annotations

import pytest

from roost.db.statements import DIALECTS, DialectName, Statement, statements

MYSQL = {
    "claim": (
        "UPDATE roost_users SET owner_server=%s, owner_life=%s, epoch=%s, updated_at=NOW, claim_id=%s "
        "WHERE roost_users.type = %s AND roost_users.user_id = %s AND roost_users.epoch = %s AND %s > %s"
    ),
    "claim_unless_leased": (
        "UPDATE roost_users SET owner_server=%s, owner_life=%s, epoch=%s, updated_at=NOW, claim_id=%s "
        "WHERE roost_users.type = %s AND roost_users.user_id = %s AND roost_users.epoch = %s AND %s > %s "
        "AND NOT (EXISTS (SELECT roost_leases.until_ms FROM roost_leases WHERE roost_leases.type = "
        "roost_users.type AND roost_leases.server_id = roost_users.owner_server AND roost_leases.life = "
        "roost_users.owner_life AND roost_leases.until_ms > NOW AND (roost_leases.server_id != %s OR "
        "roost_leases.life != %s)))"
    ),
    "keep_lease": (
        "INSERT INTO roost_leases (type, server_id, life, until_ms) VALUES (%s, %s, %s, (NOW + %s)) "
        "ON DUPLICATE KEY UPDATE until_ms = (NOW + %s)"
    ),
    "drop_lease": (
        "DELETE FROM roost_leases WHERE roost_leases.type = %s AND roost_leases.server_id = %s "
        "AND roost_leases.life = %s OR roost_leases.until_ms < NOW - 3600000"
    ),
    "flush": (
        "UPDATE roost_users SET revision=%s, schema_version=%s, min_reader=%s, last_sequence=%s, replies=%s, "
        "state=%s, updated_at=NOW WHERE roost_users.type = %s AND roost_users.user_id = %s "
        "AND roost_users.epoch = %s AND roost_users.revision < %s"
    ),
    "release": (
        "UPDATE roost_users SET owner_server=NULL, owner_life=NULL, updated_at=NOW "
        "WHERE roost_users.type = %s AND roost_users.user_id = %s AND roost_users.owner_server = %s "
        "AND roost_users.owner_life = %s AND roost_users.epoch = %s"
    ),
}
"""Word for word, because no MySQL runs here unless somebody names one."""


RETURNING = ("claim", "claim_new", "claim_unless_leased", "flush", "release")


def text(dialect: DialectName, name: str) -> str:
    sql: str = getattr(statements(dialect), name).sql
    return " ".join(sql.replace("CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)", "NOW").split())


@pytest.mark.parametrize("name", MYSQL)
def test_what_mysql_is_asked(name: str) -> None:
    assert text("mysql", name) == MYSQL[name]


def test_mysql_makes_a_row_or_claims_one_and_changes_the_epoch_last() -> None:
    sql = text("mysql", "claim_new")
    assert sql.startswith(
        "INSERT INTO roost_users (type, user_id, owner_server, owner_life, epoch, revision,"
    )
    changes = sql.partition(" ON DUPLICATE KEY UPDATE ")[2]
    right = "CASE WHEN (roost_users.epoch = %s AND %s > %s) THEN"
    assert changes.count(right) == 5
    assert changes.rpartition(", ")[2] == f"epoch = {right} %s ELSE roost_users.epoch END"
    assert "RETURNING" not in sql


@pytest.mark.parametrize("name", ["claim", "claim_new", "claim_unless_leased"])
def test_mariadb_claims_and_reads_in_one_statement(name: str) -> None:
    sql = text("mariadb", name)
    assert " ON DUPLICATE KEY UPDATE " in sql
    assert " RETURNING roost_users.type, roost_users.user_id" in sql
    assert ("WHERE EXISTS" in sql) == (name != "claim_new")


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_others_claim_by_update_and_only_postgresql_reads_in_the_same_statement(
    dialect: DialectName,
) -> None:
    assert text(dialect, "claim").startswith("UPDATE roost_users SET")
    assert text(dialect, "claim_unless_leased").startswith("UPDATE roost_users SET")
    assert " ON CONFLICT (type, user_id) DO UPDATE SET " in text(dialect, "claim_new")
    answers = {" RETURNING " in text(dialect, name) for name in RETURNING}
    assert answers == {dialect == "postgresql"}


def test_sqlite_flushes_many_rows_in_one_statement_by_the_same_rule() -> None:
    for rows, statement in statements("sqlite").flush_together.items():
        assert statement.sql.count("SELECT") == rows
        assert "roost_users.epoch = new.epoch AND roost_users.revision < new.revision" in statement.sql


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_value_is_written_into_the_text(dialect: DialectName) -> None:
    known = statements(dialect)
    for statement in (*known, *known.flush_together.values()):
        if isinstance(statement, Statement):
            values = {name: name for name in statement.names}
            assert statement.in_order(values) == statement.names


def test_statements_are_compiled_once() -> None:
    assert statements("mysql") is statements("mysql")
