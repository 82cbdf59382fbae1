"""Run the benchmarks beside their peers: `python benchmarks/run.py [names…]`; no name means all of them.

Each `bench_<name>.py` is a program of its own; its result goes to `results/<name>.json`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def main(wanted: list[str]) -> int:
    known = {file.stem.removeprefix("bench_"): file for file in sorted(HERE.glob("bench_*.py"))}
    if unknown := [name for name in wanted if name not in known]:
        print(f"no benchmark {', '.join(unknown)}; there is: {', '.join(known)}", file=sys.stderr)
        return 2
    RESULTS.mkdir(exist_ok=True)
    failed = []
    for name in wanted or known:
        print(f"== {name}", flush=True)
        result = RESULTS / f"{name}.json"
        if subprocess.run([sys.executable, str(known[name]), "--json", str(result)], check=False).returncode:
            failed.append(name)
        else:
            print(f"written: benchmarks/results/{result.name}", flush=True)
    if failed:
        print(f"missed its promise or did not run: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
