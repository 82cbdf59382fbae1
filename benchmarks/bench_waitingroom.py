"""What does waiting cost: a poll beside what the edge can do at most, a line of a million, a full server?"""

from __future__ import annotations

import sys

import uvloop

import waitingroom_http
import waitingroom_players
import waitingroom_store
from report import Case, Figure, publish, result_file

if __name__ == "__main__":
    path = result_file()
    cases: list[Case | Figure] = [
        *uvloop.run(waitingroom_http.main()),
        *uvloop.run(waitingroom_store.main()),
        *uvloop.run(waitingroom_players.main()),
    ]
    method = "\n".join((waitingroom_http.METHOD, waitingroom_store.METHOD, waitingroom_players.METHOD))
    sys.exit(publish("waitingroom", "requests per second, or as the case says", method, cases, path))
