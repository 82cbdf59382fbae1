"""The end of a program under `roost agent`: told by the agent, or by a stop hook if the agent was killed."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from roost.api.discovery import EndCause
from roost.core.errors import FencedInstance, Forbidden, NotAuthenticated, StoreUnavailable, UnknownInstance
from roost.core.loops import END
from roost.local import api_token, gateway_url
from roost.sdk.client import Client
from roost.sdk.connect import connect
from roost.settings import Settings

log = logging.getLogger("roost.agent")

LEAVE_S = 5.0
"""How long the end of the program may take to be told; then its lease tells it."""


async def take_out(roost: Client, instance_id: str, cause: EndCause) -> None:
    """Remove it, however often that takes; being out already is no fault. Who may not is told so once."""

    async def attempt() -> object:
        try:
            await roost.remove(instance_id, cause=cause)
        except (UnknownInstance, FencedInstance):
            log.debug("it was out already", extra={"instanceId": instance_id})
        except (NotAuthenticated, Forbidden) as error:
            log.error("it may not be removed", extra={"instanceId": instance_id, "reason": error.message})
        return END

    await roost.loops.keep_running("removal", attempt)


@dataclass(frozen=True, slots=True)
class Note:
    """The file by which a stop hook learns what an agent that was killed had registered."""

    path: Path | None

    @classmethod
    def of(cls, settings: Settings, type_: str, server_id: str) -> Note:
        """Without a server id nobody could name it."""
        name = f"{quote(type_, safe='')}.{quote(server_id, safe='')}.json"
        return cls(settings.data / "agents" / name if server_id else None)

    def write(self, instance_id: str) -> None:
        if self.path is None or self.read() == instance_id:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = self.path.with_suffix(".new")
            fresh.write_text(json.dumps({"instanceId": instance_id}), encoding="utf-8")
            fresh.replace(self.path)
        except OSError as error:
            log.warning("no note for the stop hook", extra={"reason": str(error)})

    def read(self) -> str:
        """The instance id; empty if there is nothing to take out."""
        try:
            return str(json.loads(self.path.read_text(encoding="utf-8"))["instanceId"]) if self.path else ""
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def forget(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


async def finish(settings: Settings, type_: str, server_id: str, cause: EndCause) -> str:
    """What a stop hook does after the agent: take out what one that was killed left. Returns whom."""
    note = Note.of(settings, type_, server_id)
    instance_id = note.read()
    if instance_id:
        roost = connect(
            gateway_url(settings), token=api_token(settings), cache_folder=settings.data / "cache"
        )
        try:
            async with asyncio.timeout(LEAVE_S):
                await take_out(roost, instance_id, cause)
        except TimeoutError:
            raise StoreUnavailable(f"{instance_id} could not be removed; its lease will end it") from None
        finally:
            await roost.close()
        note.forget()
    return instance_id
