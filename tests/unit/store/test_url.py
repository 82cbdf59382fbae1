"""Store URLs: every documented form is read, every fault is named, no secret is repeated."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import InvalidInput
from roost.store.url import Address, Credentials, StoreUrl, Tls, parse_address, parse_store_url

GOOD = {
    "redis://localhost": StoreUrl("standalone", (Address("localhost", 6379),)),
    "redis://10.0.0.7:7000/3": StoreUrl("standalone", (Address("10.0.0.7", 7000),), db=3),
    "redis://h?db=3": StoreUrl("standalone", (Address("h", 6379),), db=3),
    "redis://[::1]:7000": StoreUrl("standalone", (Address("::1", 7000),)),
    "redis://[fe80::1]": StoreUrl("standalone", (Address("fe80::1", 6379),)),
    "redis://:pw@h": StoreUrl("standalone", (Address("h", 6379),), Credentials("", "pw")),
    "redis://me:p%40%2F%3A@h": StoreUrl("standalone", (Address("h", 6379),), Credentials("me", "p@/:")),
    "redis://me:a:b@h": StoreUrl("standalone", (Address("h", 6379),), Credentials("me", "a:b")),
    "redis://me:a@b@h": StoreUrl("standalone", (Address("h", 6379),), Credentials("me", "a@b")),
    "rediss://h": StoreUrl("standalone", (Address("h", 6379),), tls=Tls()),
    "rediss://h?tls_ca=/ca.pem&tls_verify=no": StoreUrl(
        "standalone", (Address("h", 6379),), tls=Tls(ca="/ca.pem", verify=False)
    ),
    "rediss://h?tls_cert=/c.pem&tls_key=/k.pem": StoreUrl(
        "standalone", (Address("h", 6379),), tls=Tls(cert="/c.pem", key="/k.pem")
    ),
    "unix:///run/valkey.sock": StoreUrl("standalone", (Address("/run/valkey.sock", 0),)),
    "unix:///run/valkey.sock?db=2": StoreUrl("standalone", (Address("/run/valkey.sock", 0),), db=2),
    "unix://:pw@/run/my%20sock": StoreUrl("standalone", (Address("/run/my sock", 0),), Credentials("", "pw")),
    "redis+sentinel://user:pw@h1:26379,h2/mymaster?db=1": StoreUrl(
        "sentinel",
        (Address("h1", 26379), Address("h2", 26379)),
        Credentials("user", "pw"),
        db=1,
        master="mymaster",
    ),
    "redis+sentinel://h1/m?sentinel_user=s&sentinel_password=q": StoreUrl(
        "sentinel", (Address("h1", 26379),), master="m", sentinel_credentials=Credentials("s", "q")
    ),
    "rediss+sentinel://h1/m": StoreUrl("sentinel", (Address("h1", 26379),), tls=Tls(), master="m"),
    "redis+cluster://h1,h2:7000": StoreUrl("cluster", (Address("h1", 6379), Address("h2", 7000))),
    "rediss+cluster://h1/": StoreUrl("cluster", (Address("h1", 6379),), tls=Tls()),
    "embedded:": StoreUrl("embedded"),
    "embedded:/var/lib/roost": StoreUrl("embedded", folder=Path("/var/lib/roost")),
    "  redis://localhost\n": StoreUrl("standalone", (Address("localhost", 6379),)),
}


@pytest.mark.parametrize("text", GOOD)
def test_every_documented_form_is_read(text: str) -> None:
    assert parse_store_url(text) == GOOD[text]


@pytest.mark.parametrize("text", [text for text in GOOD if "@" not in text and "tls_" not in text])
def test_the_url_is_shown_in_a_form_that_means_the_same(text: str) -> None:
    url = parse_store_url(text)
    again = parse_store_url(str(url))
    if not url.sentinel_credentials.password:
        assert again == url


BAD = {
    "": "must begin with one of",
    "localhost": "must begin with one of",
    "http://h": "must begin with one of",
    "redis:h": "must begin with one of",
    "redis://": "is not host",
    "redis://h:port": "is not host",
    "redis://h:0": "out of range",
    "redis://h:70000": "out of range",
    "redis://h:99999999999999999999": "is not host",
    "redis://h1,h2": "several hosts",
    "redis://h/x": "db must be a number",
    "redis://h/-1": "db must be a number",
    "redis://h?db=many": "db must be a number",
    "redis://h?color=red": "unknown option color",
    "redis://h?tls_ca=x": "unknown option tls_ca",
    "rediss://h?tls_verify=maybe": "tls_verify must be yes or no",
    "redis://[::1": "malformed",
    "redis://me@h": "after a colon",
    "redis://h#x": "after its host",
    "unix://relative": "absolute path",
    "unix://host/run/x.sock": "absolute path",
    "redis+sentinel://h1": "name of the master",
    "redis+sentinel://h1/a/b": "name of the master",
    "redis+sentinel:///m": "is not host",
    "redis+cluster://h1/1": "only database 0",
    "redis+cluster://h1?db=1": "unknown option db",
    "redis+cluster://h1,,h2": "is not host",
}


@pytest.mark.parametrize("text", BAD)
def test_what_does_not_fit_is_named(text: str) -> None:
    with pytest.raises(InvalidInput, match=BAD[text]):
        parse_store_url(text)


SECRET = "hunter2secret"


@pytest.mark.parametrize(
    "text",
    [
        "redis://:{}@h",
        "rediss://me:{}@h:7000/2",
        "unix://:{}@/run/s.sock",
        "redis+sentinel://:{}@h1,h2/m?sentinel_password={}",
        "redis+cluster://me:{}@h1",
    ],
)
def test_no_form_of_the_url_shows_its_password(text: str) -> None:
    url = parse_store_url(text.replace("{}", SECRET))
    assert url.credentials.password == SECRET
    assert SECRET not in f"{url} {url!r} {url.credentials} {url.sentinel_credentials!r}"


@pytest.mark.parametrize(
    "text",
    [
        "redis://:{}@h:port",
        "redis://{}@h",
        "redis://me:{}@h/x",
        "redis://me:{}@h?color=red",
        "redis://:a/{}@h",
        "redis://:{}/a@h",
        "redis://:{}?a@h",
        "redis://:a?{}@h",
        "redis://:{}#a@h",
        "redis://:a#{}@h",
        "redis://me:{}@[::1",
        "redis://me:{}[@h",
        "redis://me:{}\u2100@h\u2100/x",
        "redis://:a@b/{}@h",
        "redis:/:{}@h",
        "redi://:{}@h",
        "{}",
        "redis://:{}",
        "redis://{}:70000",
        "redis+sentinel://:{}/m",
        "redis+cluster://me:{}@h1/1",
        "redis+sentinel://me:{}@h1",
    ],
)
def test_no_error_repeats_the_password(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_store_url(text.replace("{}", SECRET))
    assert SECRET not in f"{caught.value!r} {caught.value} {caught.value.hint} {caught.value.__cause__}"
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@given(
    st.text(max_size=40),
    st.sampled_from(["redis://", "rediss+sentinel://", "redis+cluster://", "unix://", ""]),
)
def test_any_text_is_read_or_refused(text: str, scheme: str) -> None:
    try:
        assert parse_store_url(scheme + text)
    except InvalidInput:
        pass


def test_credentials_say_only_what_there_is_to_say() -> None:
    assert Credentials().auth_args == ()
    assert Credentials("", "pw").auth_args == ("pw",)
    assert Credentials("me", "pw").auth_args == ("me", "pw")


@pytest.mark.parametrize(
    ("text", "loopback"),
    [
        ("redis://localhost", True),
        ("redis://127.0.0.1:1", True),
        ("redis://[::1]", True),
        ("unix:///s", True),
        ("embedded:", True),
        ("redis://db.example", False),
        ("redis+cluster://127.0.0.1,10.0.0.1", False),
    ],
)
def test_a_url_knows_whether_it_stays_on_this_machine(text: str, loopback: bool) -> None:
    assert parse_store_url(text).on_loopback() is loopback


def test_a_host_that_only_begins_like_loopback_is_not_loopback() -> None:
    assert not parse_store_url("redis://127.example.com").on_loopback()


def test_addresses_are_shown_as_they_are_written() -> None:
    for text in ("h:1", "[::1]:6379"):
        assert str(parse_address(text, 6379)) == text
    assert str(Address("/run/s.sock", 0)) == "unix:/run/s.sock"


def test_missing_tls_files_are_named() -> None:
    with pytest.raises(InvalidInput, match="TLS files"):
        Tls(ca="/does/not/exist.pem").context()


def test_certificates_are_verified_unless_told_otherwise() -> None:
    assert Tls().context().verify_mode is ssl.CERT_REQUIRED
    assert Tls().context().check_hostname
    assert Tls(verify=False).context().verify_mode is ssl.CERT_NONE
