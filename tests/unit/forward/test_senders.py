"""A receiver that cannot be reached is named by its host, and nothing else of its address is said."""

from __future__ import annotations

import pytest

from roost.core.errors import Unavailable
from roost.core.events import Mark
from roost.forward.destination import parse_destination
from roost.forward.event import begin
from roost.forward.senders import open_sender
from roost.testing import free_port

SECRET = "hunter2"


@pytest.mark.parametrize("way", ["webhook:http", "nats", "kafka"])
async def test_a_receiver_that_is_away_is_a_failure_that_repeats_no_secret(way: str) -> None:
    to = parse_destination(f"{way}://{SECRET}:{SECRET}@127.0.0.1:{free_port()}")

    async with open_sender(to, "main", "") as sender:
        with pytest.raises(Unavailable, match=r"127\.0\.0\.1") as found:
            await sender.send([begin("discovery", "discovery", Mark(1, 1))])

    assert SECRET not in found.value.message
