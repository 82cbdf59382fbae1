"""From acts of routes to the audit log; and what of an answer is worth keeping, by capability."""

from __future__ import annotations

from typing import Any

from roost.api.binding import Home
from roost.api.discovery import InstanceDetail
from roost.api.drain import DrainReply, HotfixReply, JobView
from roost.api.orders import HaltReply, PlacedReply, PlaceView
from roost.api.queue import WorldView
from roost.api.tokens import NewToken, Token
from roost.audit.model import Deed
from roost.audit.service import AuditLog
from roost.web.acts import Done


class AuditRecorder:
    """Writes acts into the audit log."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit

    async def record(self, done: Done, *, wait: bool) -> None:
        grant = done.grant
        deed = Deed(
            done.action,
            done.target,
            grant.name,
            grant.token_id,
            tuple(sorted(grant.scopes)),
            done.address,
            done.outcome,
            done.code,
            done.request_id,
            done.via,
            done.before,
            done.after,
        )
        await self._audit.record(deed, wait=wait)


def of_instance(detail: InstanceDetail) -> Any:
    found = detail.instance
    if found is None:
        return {"status": detail.status}
    return {"type": found.type, "serverId": found.server_id, "status": detail.status}


def of_override(detail: InstanceDetail) -> Any:
    found = detail.instance
    return {**of_instance(detail), "override": found.override if found is not None else None}


def of_job(job: JobView) -> Any:
    return {"state": job.state, "servers": job.servers, "type": job.type}


def of_started(reply: DrainReply) -> Any:
    job = reply.job
    if job is None:
        return None
    return {**of_job(job), "kind": job.kind, "to": job.to, "version": job.version, "rate": job.rate}


def started_job(reply: DrainReply) -> str:
    return f"job/{reply.job.id}" if reply.job is not None else "job"


def of_hotfix(reply: HotfixReply) -> Any:
    return {"servers": reply.nodes}


def hotfix_job(reply: HotfixReply) -> str:
    return f"job/{reply.job}"


def of_home(home: Home) -> Any:
    return {"type": home.type, "state": home.state, "serverId": home.server_id}


def of_world(view: WorldView) -> Any:
    return {
        "mode": view.mode,
        "message": view.message,
        "limit": view.limit,
        "rate": view.rate,
        "opensAt": view.opens_at,
    }


def of_place(view: PlaceView) -> Any:
    return {"how": view.how, "shard": view.shard, "lane": view.lane, "to": view.to}


def of_placed(reply: PlacedReply) -> Any:
    return {**of_place(reply.place), "changed": reply.changed}


def of_halt(reply: HaltReply) -> Any:
    return {"halted": reply.halted, "why": reply.why}


def of_token(token: Token | NewToken) -> Any:
    """Whoever it is for and what it may do; never the token itself."""
    return {
        "name": token.name,
        "scopes": token.scopes,
        "worlds": token.worlds,
        "types": token.types,
        "serverId": token.server_id,
    }


def made_token(token: NewToken) -> str:
    return f"token/{token.id}"
