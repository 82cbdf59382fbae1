"""The sentence below a field of a message, brought into its schema: Python itself does not keep it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec
from msgspec.inspect import CustomType, StructType, Type, multi_type_info


def note_fields(types: Iterable[type[Any]], components: dict[str, dict[str, Any]]) -> None:
    """Put what is written below each field into the schema that has the name of its class.

    A message whose schema has another name, because two share theirs, goes without.
    """
    for message in _messages(multi_type_info(list(types))):
        properties = components.get(message.__name__, {}).get("properties", {})
        names = {field.name: field.encode_name for field in msgspec.structs.fields(message)}
        for name, note in _notes(message).items():
            if (schema := properties.get(names[name])) is not None:
                schema["description"] = " ".join(filter(None, (note, schema.get("description", ""))))


def _messages(found: Iterable[Type]) -> set[type[msgspec.Struct]]:
    """Every message among these types and inside of them."""
    messages: set[type[msgspec.Struct]] = set()
    waiting: list[Any] = list(found)
    while waiting:
        one = waiting.pop()
        if isinstance(one, StructType):
            if one.cls not in messages:
                messages.add(one.cls)
                waiting += [field.type for field in one.fields]
        elif isinstance(one, Type) and not isinstance(one, CustomType):
            inner = msgspec.structs.asdict(one).values()
            waiting += [part for value in inner for part in (value if isinstance(value, tuple) else (value,))]
    return messages


@cache
def _notes(message: type[Any]) -> dict[str, str]:
    """Field → the sentence below it; of its bases too. Empty where the source is not at hand."""
    notes: dict[str, str] = {}
    for base in reversed(message.__mro__):
        if not issubclass(base, msgspec.Struct) or base is msgspec.Struct:
            continue
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError, SyntaxError):
            continue
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                match below:
                    case ast.Expr(ast.Constant(str() as text)):
                        notes[field.target.id] = " ".join(text.split())
    return notes
