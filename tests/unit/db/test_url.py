"""Database URLs: what is meant, what is refused, and that no password is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.core.errors import InvalidInput
from roost.db.url import DatabaseUrl, Tls, parse_database_url, sqlite_url

GOOD = {
    "sqlite:///users.db": DatabaseUrl("sqlite", path=Path("users.db")),
    "sqlite:////var/lib/users.db": DatabaseUrl("sqlite", path=Path("/var/lib/users.db")),
    "sqlite:///a%20b.db?synchronous=normal": DatabaseUrl("sqlite", path=Path("a b.db"), synchronous="normal"),
    "postgres://h/d": DatabaseUrl("postgresql", host="h", port=5432, database="d"),
    "postgresql://u:p%40x@h:1/d": DatabaseUrl(
        "postgresql", host="h", port=1, user="u", password="p@x", database="d"
    ),
    "postgresql://u@/d?host=/run/postgresql": DatabaseUrl(
        "postgresql", path=Path("/run/postgresql"), port=5432, user="u", database="d"
    ),
    "mariadb://u:sesame@[::1]/d": DatabaseUrl(
        "mariadb", host="::1", port=3306, user="u", password="sesame", database="d"
    ),
    "mysql://h/d?tls=yes": DatabaseUrl("mysql", host="h", port=3306, database="d", tls=Tls()),
    "mysql://h/d?tls_ca=/ca.pem&tls_verify=no": DatabaseUrl(
        "mysql", host="h", port=3306, database="d", tls=Tls(ca="/ca.pem", verify=False)
    ),
}


@pytest.mark.parametrize("text", GOOD)
def test_a_url_is_read(text: str) -> None:
    assert parse_database_url(text) == GOOD[text]


BAD = {
    "": "must begin with",
    "users.db": "must begin with",
    "oracle://u:secret@h/d": "must begin with",
    "postgresql:h/d": "must begin with",
    "sqlite://": "names a file",
    "sqlite:///": "names a file",
    "sqlite://host/users.db": "names a file",
    "sqlite:///folder/": "names a file",
    "sqlite:///x.db?synchronous=off": "synchronous",
    "sqlite:///x.db?mode=ro": "unknown option mode",
    "postgresql://u:secret@h": "name of a database",
    "postgresql://u:secret@h/a/b": "name of a database",
    "postgresql://u:secret@h:99999/d": "port",
    "postgresql://u:secret@h:x/d": "port",
    "postgresql://u:se/cret@h/d": "after its host",
    "postgresql://u:se#cret@h/d": "after its host",
    "postgresql://u:secret@h/d?sslmode=require": "unknown option sslmode",
    "postgresql://u:secret@h/d?host=/run": "unix socket",
    "mysql://u:secret@/d?host=run": "unix socket",
    "mysql://u:secret@h/d?tls=maybe": "tls of the database URL must be yes or no",
    "mysql://u:secret@[h/d": "malformed",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_url_is_refused_and_its_password_not_repeated(text: str) -> None:
    with pytest.raises(InvalidInput, match=BAD[text]) as error:
        parse_database_url(text)
    assert "secret" not in error.value.message + error.value.hint


@pytest.mark.parametrize("text", GOOD)
def test_a_url_is_shown_without_its_password(text: str) -> None:
    url = parse_database_url(text)
    assert not url.password or url.password not in str(url) + repr(url)
    assert str(url).startswith(f"{url.kind}://")


def test_tls_files_that_are_not_there_are_named() -> None:
    with pytest.raises(InvalidInput, match="TLS files of the database URL"):
        Tls(ca="/nowhere.pem").context()


def test_a_path_becomes_a_url_and_comes_back() -> None:
    assert parse_database_url(sqlite_url(Path("/data/users.db"))).path == Path("/data/users.db")
