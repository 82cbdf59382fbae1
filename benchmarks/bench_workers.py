"""How much more does one gateway answer with two workers, and what does a request cost then?"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from http_load import Load, request
from report import Case, publish, result_file
from roost.testing import free_port, run_valkey

ROUNDS = 5
ROUND_S = 2.0
CONNECTIONS = 64
TOKEN = "a-token-for-the-benchmark"
LIST = request("GET", "/sd/v1/instances?verify=false", token=TOKEN)

METHOD = (
    f"`roost gateway` and `roost gateway --workers 2` on one throwaway valkey-server, {CONNECTIONS} kept "
    f"connections that each ask for the list of instances (empty, from memory) as soon as the last answer is "
    f"there; the two take turns within each of {ROUNDS} rounds of {ROUND_S:g} s, the median counts. CPU "
    f"seconds are those of the supervisor and its workers. The load generator is one more process on the "
    f"same cores: with two cores, two workers and the generator have less than one each."
)


def listing() -> Generator[bytes, bytes, None]:
    yield LIST


@contextmanager
def gateway(store: str, workers: int) -> Iterator[tuple[int, list[int]]]:
    """Its port, and the processes that serve it."""
    port = free_port()
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "roost", "gateway", "--workers", str(workers), "--port", str(port)]
        environment = os.environ | {"ROOST_DATA": data, "ROOST_API_TOKEN": TOKEN, "ROOST_STORE": store}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            assert "is up" in process.stdout.readline()
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            yield port, [process.pid, *map(int, children)]
        finally:
            process.terminate()
            process.wait()


async def main() -> int:
    rate = Case("requests/s, two workers")
    cost = Case("requests per CPU second, two workers")
    with run_valkey() as valkey, gateway(valkey.url, 1) as one, gateway(valkey.url, 2) as two:
        loads = {"one worker": Load(*one, CONNECTIONS), "ours": Load(*two, CONNECTIONS)}
        for load in loads.values():
            await load.open()
            await load.measure(listing, 0.5)
        for _ in range(ROUNDS):
            for contender, load in loads.items():
                measured = await load.measure(listing, ROUND_S)
                rate.add(contender, measured.per_second)
                cost.add(contender, measured.per_cpu_second)
        for load in loads.values():
            load.close()
    return publish("workers", "requests", METHOD, [rate, cost], result_file())


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
