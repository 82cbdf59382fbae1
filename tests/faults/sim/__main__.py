"""`python -m tests.faults.sim --seed N [--trace]`: one run again; `--seeds A B` many."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from roost.testing import run_valkey
from tests.faults.sim.storage import Valkey
from tests.faults.sim.town import Outcome, Plan, play
from tests.faults.sim.without import SAFETIES, without


def _shown(outcome: Outcome, with_trace: bool) -> None:
    for line in outcome.trace if with_trace else ():
        print(line)
    verdict = "; ".join(outcome.faults) or "holds"
    print(f"seed {outcome.plan.seed}: {outcome.steps} steps, moves {outcome.moves}, {verdict}")
    if outcome.faults:
        print(f"  {outcome.plan}")


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.faults.sim")
    asked.add_argument("--seed", type=int, help="one run")
    asked.add_argument("--seeds", type=int, nargs=2, metavar=("FROM", "TO"))
    asked.add_argument("--crash", default="", help="source, target, controller or gate, beside what is drawn")
    asked.add_argument("--at-step", type=int, default=0)
    asked.add_argument("--durability", type=int, default=-1)
    asked.add_argument("--without", choices=SAFETIES, help="a safety that is taken away")
    asked.add_argument("--trace", action="store_true", help="print what happened")
    given = asked.parse_args()
    seeds = range(given.seed, given.seed + 1) if given.seed is not None else range(*given.seeds)
    failed = 0
    with run_valkey() as server:
        valkey = Valkey(server.port)
        for seed in seeds:
            plan = Plan.drawn(seed)
            if given.crash:
                plan = Plan(seed, crash=given.crash, at_step=given.at_step, durability=given.durability)
            with without(given.without) if given.without else contextlib.nullcontext():
                outcome = play(plan, valkey)
            failed += bool(outcome.faults)
            if outcome.faults or given.trace or len(seeds) == 1:
                _shown(outcome, given.trace)
    if len(seeds) > 1:
        print(f"{len(seeds)} seeds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts have the same order in every run
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.faults.sim", *sys.argv[1:]])
    sys.exit(main())
