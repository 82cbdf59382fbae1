"""Straight to the store, or to a platform in this process: the part of the SDK that knows all of Roost.

It is loaded on use: a game server behind a gateway does not pay for it.
"""
