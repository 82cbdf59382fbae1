"""Messages about the demo fleet that a first start shows."""

from __future__ import annotations

from roost.api import Message
from roost.core import errors as e

DEMO = "/demo/v1"


class NoDemo(e.NotFound):
    """No demo runs here."""

    code = "NO_DEMO"
    hint = "`roost up` starts one in profile dev on the embedded store, unless --no-demo"


class DemoNotReady(e.Conflict):
    """The demo is not ready for this act."""

    code = "DEMO_NOT_READY"
    hint = "GET /demo/v1 shows its servers; try again in some seconds"


class DemoStep(Message):
    """One act of the guided tour."""

    id: str
    title: str
    done: bool


class DemoView(Message):
    """The demo fleet: what it is called, and what can be tried with it."""

    running: bool
    """No: it was stopped, and the rest is empty."""
    types: list[str]
    world: str
    symbols: list[str]
    """What its order server trades; empty: it has none, because somebody else's serves orders."""
    servers: list[str]
    """Server ids of its entity servers, the oldest version first."""
    steps: list[DemoStep]


class DemoActed(Message):
    message: str
    """What happens now, for people."""
