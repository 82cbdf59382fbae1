"""docs/keys.md, made from what every capability declares."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from roost.store import keys
from roost.store.keys import SCOPE, KeyGroup, PlainKey


def declared() -> Iterator[KeyGroup | PlainKey]:
    """What the files of this package declare, those of every scope first."""
    yield keys.FORMAT
    yield SCOPE
    for module in sorted(found.name for found in pkgutil.iter_modules(keys.__path__)):
        if module != "glossary":
            for value in vars(import_module(f"{keys.__name__}.{module}")).values():
                if isinstance(value, (KeyGroup, PlainKey)):
                    yield value


def rows() -> Iterator[tuple[str, str, str, str]]:
    """(pattern, type, meaning, documented name) of every key."""
    for found in declared():
        if isinstance(found, PlainKey):
            yield found.name, found.type, found.meaning, found.stands_for
            continue
        for family in found.families:
            kind = "<kind>:" if found is SCOPE else ""
            each = "<:job>" if family.name == "leader" else family.each
            lasts = f" (TTL {_span(family.ttl_s)})" if family.ttl_s else ""
            pattern = f"{found.stem}{family.name}:{kind}{{{found.tag}}}{each}"
            yield pattern, family.type, family.meaning + lasts, family.stands_for


def _span(seconds: int) -> str:
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} s"


def glossary() -> str:
    """The text of docs/keys.md."""
    lines = [
        "# Keys",
        "",
        "Every key that Roost writes. `ROOST_NAMESPACE`, where it is set, stands before all of them.",
        "The braces are literal: they are the cluster hash tag, and what they hold is the scope; `<kind>` is",
        "the kind of the scope: discovery, world, alerts, binding, drain, shard, lanes, audit or forward.",
        "",
        "Made from `src/roost/store/keys/` by `python -m roost.store.keys.glossary > docs/keys.md`.",
        "",
        "| Key | Type | Meaning | In the design documents |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{pattern}` | {type_} | {meaning} | {stands} |" for pattern, type_, meaning, stands in rows()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(glossary(), end="")
