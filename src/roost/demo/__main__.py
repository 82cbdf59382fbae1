"""`python -m roost.demo entity ID VERSION` or `python -m roost.demo rest`: a process of the demo.

`roost up` starts it, with its settings in the environment and a pipe on standard input.
"""

from __future__ import annotations

import gc
import sys

import uvloop

from roost.core.errors import RoostError
from roost.demo.servers import entity, rest
from roost.logs import start_logging, wants_colour
from roost.settings import ENVIRONMENT, Loaded

FAILED = 1
YOUNG_OBJECTS = 20_000
"""As every role has it: looking for dead cycles at Python's own pace costs a tenth."""


def main(args: list[str]) -> int:
    settings = Loaded.load().settings
    start_logging(settings.log_level, settings.log_format, wants_colour=wants_colour(ENVIRONMENT))
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    try:
        uvloop.run(entity(settings, *args[1:]) if args[0] == "entity" else rest(settings))
    except RoostError as error:
        print(f"demo: {error.message}", file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
