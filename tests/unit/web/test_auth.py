"""The guard of a process without tokens of its own."""

from __future__ import annotations

import pytest

from roost.core.errors import Forbidden, NotAuthenticated
from roost.web.auth import OneToken


async def test_g17_the_token_that_only_reads_reads() -> None:
    guard = OneToken("started-with", "prometheus")

    reader = await guard.identify("prometheus")

    reader.check_scope("read")
    with pytest.raises(Forbidden):
        reader.check_scope("gameserver")
    (await guard.identify("started-with")).check_scope("admin")


@pytest.mark.parametrize("guard", [OneToken(""), OneToken("", ""), OneToken("a", "b")])
@pytest.mark.parametrize("shown", ["", "c", "\udcff"])
async def test_g17_no_other_token_counts(guard: OneToken, shown: str) -> None:
    with pytest.raises(NotAuthenticated):
        await guard.identify(shown)
