"""`roost doctor`: look at everything that a start depends on, and say what to do."""

from __future__ import annotations

import os
import platform
import socket

from roost.app import open_platform
from roost.cli.store_users import patterns_of
from roost.core.errors import InvalidInput, RoostError, StoreUnavailable
from roost.settings import Settings
from roost.store.acl.examine import examine_user
from roost.store.acl.roles import ROLES
from roost.store.inspect import Finding, inspect_store
from roost.store.store import Store
from roost.store.topology.embedded import find_server_binary, running_address
from roost.web.listen import holder_of


async def examine(settings: Settings, role: str = "") -> list[Finding]:
    """Every finding; a store that is away is one of them, not an error. `role`: whose rights are expected."""
    findings = [_python(), _data_folder(settings), await _port(settings)]
    if settings.store_url.shape == "embedded":
        binary, running = _binary(settings), await _runs(settings)
        findings.append(binary)
        if not running:
            not_running = Finding("store", "ok", "embedded, not running now; `roost up` starts it")
            return [*findings, not_running]
    try:
        async with open_platform(settings, attach=True) as opened:
            url = str(settings.store_url)
            findings.append(Finding("store", "ok", f"{url} ({opened.store.topology.shape}) answers"))
            findings += await inspect_store(opened.store)
            findings.append(await _user(opened.store, settings, role))
    except RoostError as error:
        away = isinstance(error, StoreUnavailable)
        advice = "check that a server runs there and that --store is right" if away else error.hint
        findings.append(Finding("store", "fail", error.message, advice))
    return findings


async def _user(store: Store, settings: Settings, role: str) -> Finding:
    if role and role not in ROLES:
        raise InvalidInput(f"no role {role}", hint=f"roles are: {', '.join(ROLES)}")
    return await examine_user(store, patterns_of(settings), role=role, is_dev=settings.is_dev())


def _python() -> Finding:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("python", "ok", found)


def _data_folder(settings: Settings) -> Finding:
    folder = existing = settings.data
    try:
        while not existing.exists():
            existing = existing.parent
        can_write = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    except OSError:  # not even looked into
        can_write = False
    if not can_write:
        return Finding(
            "data folder", "fail", f"{folder} cannot be written", "correct permissions or name another --data"
        )
    return Finding("data folder", "ok", str(folder) + ("" if folder == existing else " (will be made)"))


async def _port(settings: Settings) -> Finding:
    host, port = settings.gateway.host, settings.gateway.port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if holder_of(port).startswith(("roost", "python")):
                return Finding("port", "ok", f"{port} is in use by {holder_of(port)}")
            advice = "stop it, or choose another with --port"
            return Finding("port", "warn", f"{port}: {error.strerror}, {holder_of(port)}", advice)
    return Finding("port", "ok", f"{port} is free")


def _binary(settings: Settings) -> Finding:
    try:
        return Finding("store program", "ok", str(find_server_binary(settings.embedded.binary)))
    except RoostError as error:
        return Finding("store program", "fail", error.message, error.hint)


async def _runs(settings: Settings) -> bool:
    return await running_address(settings.store_url.folder or settings.store_folder) is not None
