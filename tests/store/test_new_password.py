"""A password is taken up by every link, whenever it was opened."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from roost.app import open_platform
from roost.core.errors import StoreError
from roost.settings import Loaded
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import eventually, run_valkey


async def test_a_link_that_is_being_opened_takes_it_up_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_valkey(password="old") as valkey:
        environment = {"ROOST_STORE": valkey.url, "ROOST_DATA": str(tmp_path), "ROOST_PROFILE": "lan"}
        settings = Loaded.load(environ=environment | {"ROOST_API_TOKEN": "only-for-this-test"}).settings
        async with open_platform(settings, roles=(), attach=True, wait_s=5.0) as platform:
            opening = Store.open

            async def renewed_meanwhile(*args: Any, **named: Any) -> Store:
                opened = await opening(*args, **named)
                valkey.command_reply("ACL", "SETUSER", "default", ">new")
                await platform.take_up(parse_store_url(valkey.url.replace("old", "new")))
                valkey.command_reply("ACL", "SETUSER", "default", "<old")
                return opened

            monkeypatch.setattr(Store, "open", renewed_meanwhile)
            async with platform.link_beside("roost-beside") as beside:
                valkey.password = "new"
                valkey.command_reply("CLIENT", "KILL", "TYPE", "normal")
                for store in (platform.store, beside):
                    await eventually(partial(_answers, store), "an answer by the new password")


async def _answers(store: Store) -> bool:
    try:
        return bool(await store.call("PING", idempotent=True))
    except StoreError:
        return False
