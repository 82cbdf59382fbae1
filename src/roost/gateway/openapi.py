"""The OpenAPI 3.1 document and a page to read it, both made from the route table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

import msgspec

from roost.api import limits
from roost.api.errors import ErrorReply
from roost.api.limits import FileName
from roost.api.orders import Symbol
from roost.core.errors import (
    BodyTooLarge,
    Forbidden,
    Internal,
    InvalidId,
    InvalidInput,
    MalformedJson,
    NotAuthenticated,
    RoostError,
    StoreError,
    with_codes,
)
from roost.gateway.field_notes import note_fields
from roost.version import __version__
from roost.web.errors import headers_of, status_of
from roost.web.route import REQUEST_ID, TRACE, Header, Route

PATH_PARAMETERS: dict[str, Any] = {
    "file": FileName,
    "folder": FileName,
    "id": limits.Id,
    "serverId": limits.Id,
    "symbol": Symbol,
    "userId": limits.Id,
    "world": limits.WorldName,
}
"""Name in a path → the type that says what it may hold."""

_REPLY_HEADERS = {
    "Retry-After": Header("Retry-After", "Seconds after which to come again.", "^[0-9]+$"),
    "WWW-Authenticate": Header("WWW-Authenticate", "How to show a token."),
}
"""What `headers_of` sends with an error."""


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The whole API as OpenAPI 3.1."""
    routes = list(routes)
    refs, components = _schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = paths.setdefault(route.path, {"parameters": [_header(REQUEST_ID), _header(TRACE)]})
        path[route.method.lower()] = _operation(route, refs)
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


Refs = dict[type[Any], dict[str, Any]]
"""Each message type → the reference to its schema."""


def _schemas(routes: list[Route]) -> tuple[Refs, dict[str, Any]]:
    """Two messages of one name are told apart by msgspec, so a type alone does not tell its schema's name."""
    types: list[type[Any]] = [
        ErrorReply,
        *(t for route in routes for t in (route.body, route.reply) if t is not None),
    ]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    note_fields(types, components)
    return dict(zip(types, schemas, strict=True)), components


def _operation(route: Route, refs: Refs) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.handler.__name__,
        "parameters": _parameters(route),
        "responses": {str(route.status): _success(route, refs)} | _refusals(route, refs),
    }
    if route.scope is not None:
        operation["security"] = [{"token": []}, {"bearer": []}]
        operation["x-scope"] = route.scope
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.may_lack_body,
            "content": _content(refs[route.body]),
        }
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": msgspec.json.schema(PATH_PARAMETERS.get(name, str)),
        }
        for name in _path_names(route)
    ]
    parameters += map(_header, route.headers)
    if route.query is not None:
        definitions = msgspec.json.schema(route.query)["$defs"]
        note_fields([route.query], definitions)
        schema = definitions[route.query.__name__]
        for name, kind in schema["properties"].items():
            required = name in schema.get("required", ())
            parameters.append({"name": name, "in": "query", "required": required, "schema": kind})
    return parameters


def _path_names(route: Route) -> list[str]:
    return re.findall(r"{(\w+)}", route.path)


def _header(header: Header) -> dict[str, Any]:
    """As a parameter of a request."""
    return {"name": header.name, "in": "header", "required": False, **_told(header)}


def _told(header: Header) -> dict[str, Any]:
    schema = {"type": "string"} | ({"pattern": header.pattern} if header.pattern else {})
    return {"description": header.meaning, "schema": schema}


def _reply_headers(always: Iterable[Header], sometimes: Iterable[Header] = ()) -> dict[str, Any]:
    return {
        REQUEST_ID.name: {"required": True, **_told(REQUEST_ID)},
        **{header.name: {"required": True, **_told(header)} for header in always},
        **{header.name: _told(header) for header in sometimes},
    }


def _success(route: Route, refs: Refs) -> dict[str, Any]:
    headers = _reply_headers((), route.reply_headers)
    success: dict[str, Any] = {"description": "done", "headers": headers}
    if route.reply is not None:
        success["content"] = _content(refs[route.reply])
    elif route.status != 204:
        success["content"] = {route.content_type: {}}
    return success


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def errors_of(route: Route) -> list[type[RoostError]]:
    """Everything that a route can be refused with: what it names itself, and what follows from its form."""
    errors = [*route.errors, Internal]
    if route.scope is not None:
        errors += [NotAuthenticated, Forbidden]
    if route.scope is not None or route.touches_store:  # the guard reads its tokens from the store
        errors += [error for error in with_codes() if issubclass(error, StoreError)]
    if _path_names(route):
        errors.append(InvalidId)
    if route.query is not None or route.body is not None:
        errors += [InvalidInput, InvalidId]
    if route.body is not None:
        errors += [BodyTooLarge, MalformedJson]
    return errors


def _refusals(route: Route, refs: Refs) -> dict[str, Any]:
    by_status: dict[int, list[type[RoostError]]] = {}
    for error in errors_of(route):
        by_status.setdefault(status_of(error), []).append(error)
    content = _content(refs[ErrorReply])
    return {
        str(status): {
            "description": ", ".join(sorted({error.code for error in errors})),
            "headers": _reply_headers(_REPLY_HEADERS[name] for name in headers_of(errors[0]())),
            "content": content,
        }
        for status, errors in sorted(by_status.items())
    }


_STYLE = (files("roost.gateway") / "pages" / "docs.css").read_text(encoding="utf-8")


def page(routes: Iterable[Route]) -> str:
    """The same table for people; no external assets."""
    routes = list(routes)
    refs, components = _schemas(routes)
    parts = [_section(route, refs, components) for route in routes]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Roost API</title><style>{_STYLE}</style>"
        f"<h1>Roost API <span class=s>{__version__}</span></h1>"
        f"<p><a href=/>← console</a></p>"
        f"<p>Tokens travel as <code>X-API-Token</code> or <code>Authorization: Bearer</code>. "
        f"Machine-readable: <a href=/openapi.json>/openapi.json</a></p>{''.join(parts)}</html>"
    )


def _section(route: Route, refs: Refs, components: dict[str, Any]) -> str:
    scope = f"scope {route.scope}" if route.scope else "open"
    parameters = "".join(
        f"<tr><td><code>{escape(p['name'])}</code><td>{p['in']}<td>{'required' if p['required'] else ''}"
        for p in _parameters(route)
    )
    refusals = "".join(
        f"<tr><td>{status}<td><code>{escape(r['description'])}</code>"
        for status, r in _refusals(route, refs).items()
    )
    shapes = "".join(
        f"<p>{title}</p><pre>{escape(_pretty(components[refs[message]['$ref'].rpartition('/')[2]]))}</pre>"
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
