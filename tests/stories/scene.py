"""The verbs that stories are told in: people, game servers and operators at one gateway.

Time stands still but for `tick SECONDS`. A verb answers in a line or two what a reader wants to know of it.
"""

from __future__ import annotations

from typing import Any

from roost.testing import Answer, Command, Names, StoryRunner, Verb
from tests.acceptance.queue import TOKEN, Gate

NAMES = {"instance": r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "ticket": r"\bv1\.[\w.-]+"}
"""What is new in every run: instance ids are ULIDs, tickets are signed."""

SHOWN = ("status", "rank", "ahead", "ticketId")


class Scene:
    """One gateway; remembers the ids of servers and the receipts of people by their names."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._servers: dict[str, str] = {}
        self._receipts: dict[str, str] = {}

    def runner(self) -> StoryRunner:
        verbs: list[Verb] = [
            *(self.register, self.beat, self.override, self.remove, self.discover),
            *(self.report, self.enter, self.status, self.leave, self.consume, self.tick),
        ]
        return StoryRunner({verb.__name__: verb for verb in verbs}, Names(NAMES))

    # -- discovery

    async def register(self, command: Command) -> str:
        """`register 501 capacity=10`"""
        (server,) = command.args
        given = {"type": "game", "group": "eu", "serverId": server, "status": "ready"}
        numbers = {name: int(value) for name, value in command.options.items()}
        answer = await self._admin("POST", "/sd/v1/instances", {**given, **numbers})
        if answer.status >= 400:
            return _refusal(answer)
        self._servers[server] = answer.json["instanceId"]
        return f"registered as {answer.json['instanceId']}"

    async def beat(self, command: Command) -> str:
        """`beat 501 load=3`"""
        (server,) = command.args
        numbers = {name: int(value) for name, value in command.options.items()}
        path = f"/sd/v1/instances/{self._servers[server]}/heartbeat"
        answer = await self._admin("POST", path, numbers)
        return _refusal(answer) if answer.status >= 400 else str(answer.json["status"])

    async def override(self, command: Command) -> str:
        """`override 501 drain=true`; without an option the override is lifted"""
        (server,) = command.args
        path = f"/sd/v1/instances/{self._servers[server]}/override"
        given = {name: value == "true" for name, value in command.options.items()}
        return _done(await self._admin("PUT", path, given))

    async def remove(self, command: Command) -> str:
        """`remove 501`"""
        (server,) = command.args
        return _done(await self._admin("DELETE", f"/sd/v1/instances/{self._servers[server]}"))

    async def discover(self, command: Command) -> str:
        """`discover`: every server in a line"""
        answer = await self._admin("GET", "/sd/v1/instances")
        rows = sorted(answer.json["instances"], key=lambda one: str(one["serverId"]))
        return "\n".join(_server(row) for row in rows) or "nobody"

    # -- waiting room

    async def report(self, command: Command) -> str:
        """`report 501 capacity=1 users=0`"""
        (server,) = command.args
        numbers = {name: int(value) for name, value in command.options.items()}
        return _done(await self._gate.report(server, **numbers))

    async def enter(self, command: Command) -> str:
        """`enter ann`"""
        (user,) = command.args
        return self._told(user, await self._gate.try_to_enter(user, receipt=self._receipts.get(user, "")))

    async def status(self, command: Command) -> str:
        """`status ann`"""
        (user,) = command.args
        return self._told(user, await self._gate.try_status(user, self._receipts[user]))

    async def leave(self, command: Command) -> str:
        """`leave ann`"""
        (user,) = command.args
        return _done(await self._gate.leave(user, self._receipts[user]))

    async def consume(self, command: Command) -> str:
        """`consume <ticket-1> at=501`"""
        (ticket,) = command.args
        answer = await self._gate.consume(ticket, command.options["at"])
        return _refusal(answer) if answer.status >= 400 else f"{answer.json['userId']} is in"

    async def tick(self, command: Command) -> str:
        """`tick 2`: so many seconds pass, and the leader admits people"""
        issued = await self._gate.tick(float(command.args[0]) if command.args else 0.0)
        return f"tickets issued: {issued}"

    def _told(self, user: str, answer: Answer) -> str:
        if answer.status >= 400:
            return _refusal(answer)
        self._receipts[user] = answer.json.get("receipt") or self._receipts.get(user, "")
        shown = {name: answer.json[name] for name in SHOWN if answer.json.get(name) not in (None, "")}
        return " ".join([str(shown.pop("status")), *(f"{name}={value}" for name, value in shown.items())])

    async def _admin(self, method: str, path: str, body: Any = None) -> Answer:
        return await self._gate.ask(method, path, body, token=TOKEN)


def _server(row: dict[str, Any]) -> str:
    accepting = "accepting" if row["accepting"] else "not accepting"
    return f"{row['serverId']} {row['status']}, {accepting}, {row['load']} of {row['capacity']}"


def _refusal(answer: Answer) -> str:
    status, code = answer.refusal
    return f"refused: {status} {code}"


def _done(answer: Answer) -> str:
    return _refusal(answer) if answer.status >= 400 else "done"
