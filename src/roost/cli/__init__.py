"""The `roost` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; an error of ours is two lines on standard error, never a traceback."""
    from roost.cli.app import app
    from roost.core.errors import RoostError

    try:
        app()
    except RoostError as error:
        print(f"roost: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"       {error.hint}", file=sys.stderr)
        sys.exit(1)
