"""The keys that sign what people carry: entries and receipts with one set, tickets with another."""

from __future__ import annotations

import base64
import logging
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from roost.api.queue import EntryInput
from roost.core import errors as e
from roost.core.passes import BASE, EntryPass, Passes
from roost.core.signing import MasterKey, parse_keys

log = logging.getLogger("roost.waitingroom.keyring")


class KeyRing:
    """Keys as `kid:base64,kid:base64`; where `dev_folder` is given, one that is made and kept there will do.

    Nothing is read or made before `passes` is used: who runs no waiting room needs no keys. Without keys and
    without a folder that use is refused with `WorldClosed`.
    """

    def __init__(self, queue_keys: str, ticket_keys: str, *, dev_folder: Path | None = None) -> None:
        self._queue_keys = queue_keys
        self._ticket_keys = ticket_keys
        self._dev_folder = dev_folder
        self._passes: Passes | None = None
        self._has_warned = False
        self.takes_unsigned = dev_folder is not None and not queue_keys
        """Whether an entry needs no signature: in profile dev, where no login service has a key of ours."""

    @property
    def passes(self) -> Passes:
        if self._passes is None:
            self._passes = Passes(
                self._keys(self._queue_keys, "ROOST_QUEUE_KEYS"),
                self._keys(self._ticket_keys, "ROOST_TICKET_KEYS"),
            )
        return self._passes

    @property
    def ticket_digests(self) -> tuple[str, ...]:
        """Of the keys for tickets, the one that signs first; none where nothing can be signed."""
        try:
            return self.passes.ticket_digests
        except e.WorldClosed:
            return ()

    def entry_pass(self, given: EntryInput) -> EntryPass:
        """What the login service signed; what they say themselves where entries need no signature."""
        if self.takes_unsigned and not given.signature:
            self._warn_once()
            return EntryPass(given.world, given.user_id, BASE, 0.0, given.party, given.party_size)
        if not given.signature:
            raise e.TokenRefused(
                "an entry needs the signature of the login service", hint="see roost.sign_entry"
            )
        return self.passes.entry(given.signature, given.world, given.user_id, time.time())

    def life_proof(self, server_id: str, life: str) -> str:
        """What a server shows when it acts for itself; empty where nothing can be signed."""
        try:
            return self.passes.sign_life(server_id, life)
        except e.WorldClosed:
            return ""

    def renewed_proof(self, proof: str, life: str) -> str:
        """The proof of this life by the key that signs now; empty if it is already, or proves nothing."""
        try:
            return self.passes.renewed_life(proof, life) if proof else ""
        except (e.WorldClosed, e.TokenRefused):
            return ""

    def _warn_once(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning("entries need no signature: profile dev without ROOST_QUEUE_KEYS")

    def _keys(self, configured: str, variable: str) -> tuple[MasterKey, ...]:
        if configured:
            return parse_keys(configured)
        if self._dev_folder is None:
            raise e.WorldClosed(
                f"no keys to sign with: {variable} is not set", hint="`roost config --example`"
            )
        return parse_keys(_dev_key(self._dev_folder))


def _dev_key(folder: Path) -> str:
    """The key in the file `dev-keys`, made on first use and readable by its owner only."""
    path = folder / "dev-keys"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        ours = path.with_name(f"dev-keys.{secrets.token_hex(4)}")
        with os.fdopen(os.open(ours, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write("dev:" + base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
        with suppress(FileExistsError):  # another process was first; nobody reads it half written
            os.link(ours, path)
        ours.unlink()
    return path.read_text(encoding="utf-8").strip()
