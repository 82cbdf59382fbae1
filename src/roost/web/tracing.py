"""The span of a request, around its answer. Routes of a listener without a tracer are not wrapped at all."""

from __future__ import annotations

from aiohttp import web

from roost.core.tracing import TRACEPARENT, Tracer, current_trace, parent_for
from roost.web.auth import token_in
from roost.web.plain import Answer, Asked, Reply

REFUSED = (401, 403)


def traced(answer: Answer, tracer: Tracer, route: str, span: str) -> Answer:
    """`span`: its name where each request may begin a trace; empty: only one that brings a context is traced.

    Whoever shows a token is believed about sampling; if the token turns out to be none, nothing is told.
    """
    name, begins = span or route, bool(span)

    async def answer_traced(http: Asked) -> Reply | web.StreamResponse:
        given = http.headers.get(TRACEPARENT, "")
        if not given and not begins:
            return await answer(http)
        parent = parent_for(tracer, given, is_trusted=bool(token_in(http.headers)))
        if parent is None:
            return await answer(http)
        under_way = tracer.begin(name, parent, route=route)
        token = current_trace.set(under_way.context)
        try:
            reply = await answer(http)
        finally:
            current_trace.reset(token)
        if reply.status not in REFUSED:
            under_way.end(status=reply.status)
        return reply

    return answer_traced
