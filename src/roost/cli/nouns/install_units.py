"""`roost install-units`: systemd units with the paths of this installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

Roles = Annotated[
    list[str] | None, typer.Option("--role", help="A role; may be given again. All by default.")
]
Output = Annotated[Path | None, typer.Option(help="Folder to write them to, such as /etc/systemd/system.")]
Etc = Annotated[Path, typer.Option(help="Folder of the environment files.")]


@app.command(
    "install-units",
    epilog="Examples:  roost install-units --role gateway   ·   "
    "roost install-units --role entity --role gate --output /etc/systemd/system",
)
def install_units(role: Roles = None, output: Output = None, etc: Etc = Path("/etc/roost")) -> None:
    """Print the systemd unit of each role, or write it to a folder. Nothing is started."""
    from roost.cli import units
    from roost.core.errors import InvalidInput

    roles = role or list(units.UNITS)
    if unknown := sorted(set(roles) - set(units.UNITS)):
        raise InvalidInput(f"no role {', '.join(unknown)}", hint=f"roles are: {', '.join(units.UNITS)}")
    for name in roles:
        text, file = units.render(name, units.this_program(), etc), units.file_name(name)
        if output is None:
            print(f"# {file}\n{text}")
        else:
            try:
                (output / file).write_text(text, encoding="utf-8")
            except OSError as error:
                raise InvalidInput(
                    f"cannot write {output / file}: {error.strerror}",
                    hint="--output names a folder that is there",
                ) from None
            print(output / file)
