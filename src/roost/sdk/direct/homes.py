"""Bindings at hand."""

from __future__ import annotations

from collections.abc import Callable

from roost.api.binding import Home
from roost.binding.service import Bindings
from roost.binding.views import home_of


class DirectHomes:
    """`bindings` is asked for on use: most clients do not, and it reads the settings."""

    def __init__(self, bindings: Callable[[], Bindings]) -> None:
        self._bindings = bindings

    async def home_of(self, type_: str, user: str) -> Home:
        return await home_of(self._bindings(), type_, user)
