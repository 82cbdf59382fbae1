"""What does discovery cost: over HTTP beside etcd, on the store with 10 000, until watchers know?"""

from __future__ import annotations

import sys

import uvloop

import discovery_checked
import discovery_http
import discovery_store
import discovery_watch
from report import Case, Figure, publish, result_file

if __name__ == "__main__":
    path = result_file()
    cases: list[Case | Figure] = [
        *uvloop.run(discovery_http.main()),
        *uvloop.run(discovery_checked.main()),
        *uvloop.run(discovery_store.main()),
        *uvloop.run(discovery_watch.main()),
    ]
    parts = (discovery_http, discovery_checked, discovery_store, discovery_watch)
    method = "\n".join(part.METHOD for part in parts)
    sys.exit(publish("discovery", "requests per second, or as the case says", method, cases, path))
