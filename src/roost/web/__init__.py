"""What everything that speaks HTTP shares: routes, errors, tokens, ops pages, metrics, streams, listening.

It knows `core` and `api` only. The gateway and the servers are built with it; no capability imports it.
"""
