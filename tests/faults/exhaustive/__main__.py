"""`python -m tests.faults.exhaustive [rule]`: explore, or show what breaks without a rule."""

from __future__ import annotations

import sys

from tests.faults.exhaustive.explore import Explorer
from tests.faults.exhaustive.rules import ALL
from tests.faults.exhaustive.scenarios import HOLDS, TAKEN_AWAY


def main(names: list[str]) -> None:
    for name, bounds in HOLDS.items() if not names else ():
        print(f"{name}: {Explorer(bounds).run()}")
    for rule, bounds, _ in TAKEN_AWAY:
        if not names or rule in names:
            print(f"without {rule}: {Explorer(bounds, ALL.without(rule)).run()}")


if __name__ == "__main__":
    main(sys.argv[1:])
