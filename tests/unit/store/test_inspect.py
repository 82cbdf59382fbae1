from __future__ import annotations

import pytest

from roost.store.inspect import eviction_fault, kind_of, parse_info


@pytest.mark.parametrize(
    ("info", "name", "fault"),
    [
        ("redis_version:7.0.15\r\nredis_mode:standalone", "Redis 7.0.15", ""),
        ("redis_version:8.2.1", "Redis 8.2.1", ""),
        ("redis_version:10.0.0", "Redis 10.0.0", ""),
        ("redis_version:6.2.14", "Redis 6.2.14", "too old"),
        ("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2", "Valkey 9.1.2", ""),
        ("redis_version:7.2.4\r\nvalkey_version:7.2.5", "Valkey 7.2.5", ""),
        ("redis_version:6.3.4\r\nexecutable:/usr/bin/keydb-server", "KeyDB 6.3.4", "not supported"),
        ("redis_version:6.3.4\r\nmvcc_depth:0", "KeyDB 6.3.4", "not supported"),
        ("redis_version:7.4.0\r\ndragonfly_version:df-v1.27", "Dragonfly df-v1.27", "not supported"),
    ],
)
def test_servers_are_known_by_name_and_judged_by_version(info: str, name: str, fault: str) -> None:
    kind = kind_of(parse_info(f"# Server\r\n{info}\r\n".encode()))
    assert str(kind) == name
    assert (fault in kind.fault) if fault else not kind.fault


def test_eviction_is_a_fault_only_where_it_can_happen() -> None:
    assert eviction_fault({"maxmemory_policy": "allkeys-lru", "maxmemory": "1000"})
    assert not eviction_fault({"maxmemory_policy": "allkeys-lru", "maxmemory": "0"})
    assert not eviction_fault({"maxmemory_policy": "noeviction", "maxmemory": "1000"})
