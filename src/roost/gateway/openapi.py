"""The OpenAPI 3.1 document and a page to read it, both made from the route table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

import msgspec

from roost.api.errors import ErrorReply
from roost.core.errors import Forbidden, InvalidInput, NotAuthenticated, StoreUnavailable
from roost.gateway.errors import BodyTooLarge, row_of
from roost.gateway.route import Route
from roost.version import __version__


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The whole API as OpenAPI 3.1."""
    routes = list(routes)
    types = [t for route in routes for t in (route.body, route.reply) if t is not None]
    _, components = msgspec.json.schema_components(
        [*types, ErrorReply], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Roost",
            "version": __version__,
            "summary": "Session control plane for stateful servers",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-API-Token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.handler.__name__,
        "parameters": _parameters(route),
        "responses": {str(route.status): _success(route)} | _refusals(route),
    }
    if route.scope is not None:
        operation["security"] = [{"token": []}, {"bearer": []}]
        operation["x-scope"] = route.scope
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(route.body)}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    if route.query is not None:
        schema = msgspec.json.schema(route.query)["$defs"][route.query.__name__]
        for name, kind in schema["properties"].items():
            required = name in schema.get("required", ())
            parameters.append({"name": name, "in": "query", "required": required, "schema": kind})
    return parameters


def _success(route: Route) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "done"}
    if route.reply is not None:
        success["content"] = _content(route.reply)
    elif route.status != 204:
        success["content"] = {route.content_type: {}}
    return success


def _content(message: type[Any]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{message.__name__}"}}}


def errors_of(route: Route) -> list[type[BaseException]]:
    """Everything that a route can be refused with."""
    errors: list[type[BaseException]] = list(route.errors)
    if route.scope is not None:
        errors += [NotAuthenticated, Forbidden, StoreUnavailable]
    if route.query is not None or route.body is not None:
        errors.append(InvalidInput)
    if route.body is not None:
        errors.append(BodyTooLarge)
    return errors


def _refusals(route: Route) -> dict[str, Any]:
    codes: dict[int, list[str]] = {}
    for error in errors_of(route):
        row = row_of(error())
        codes.setdefault(row.status, []).append(row.code)
    content = _content(ErrorReply)
    return {
        str(status): {"description": ", ".join(sorted(set(words))), "content": content}
        for status, words in sorted(codes.items())
    }


_STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8882}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
details{border:1px solid var(--line);border-radius:.5rem;margin:.5rem 0;padding:.5rem .8rem}
summary{cursor:pointer}code,pre{font-family:ui-monospace,monospace}
pre{background:var(--soft);padding:.6rem;overflow:auto}
b.m{display:inline-block;min-width:4.2rem}.s{opacity:.7}
table{border-collapse:collapse}td{padding:.1rem .8rem .1rem 0}
"""


def page(routes: Iterable[Route]) -> str:
    """The same table for people; no external assets."""
    routes = list(routes)
    components = document(routes)["components"]["schemas"]
    parts = [_section(route, components) for route in routes]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Roost API</title><style>{_STYLE}</style>"
        f"<h1>Roost API <span class=s>{__version__}</span></h1>"
        f"<p>Tokens travel as <code>X-API-Token</code> or <code>Authorization: Bearer</code>. "
        f"Machine-readable: <a href=/openapi.json>/openapi.json</a></p>{''.join(parts)}</html>"
    )


def _section(route: Route, components: dict[str, Any]) -> str:
    scope = f"scope {route.scope}" if route.scope else "open"
    parameters = "".join(
        f"<tr><td><code>{escape(p['name'])}</code><td>{p['in']}<td>{'required' if p['required'] else ''}"
        for p in _parameters(route)
    )
    refusals = "".join(
        f"<tr><td>{status}<td><code>{escape(r['description'])}</code>"
        for status, r in _refusals(route).items()
    )
    shapes = "".join(
        f"<p>{title}</p><pre>{escape(_pretty(components[message.__name__]))}</pre>"
        for title, message in (("Request", route.body), ("Reply", route.reply))
        if message is not None
    )
    return (
        f"<details><summary><b class=m>{route.method}</b><code>{escape(route.path)}</code> "
        f"{escape(route.summary)} <span class=s>({scope})</span></summary>"
        f"<table>{parameters}</table>{shapes}<table>{refusals}</table></details>"
    )


def _pretty(schema: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
