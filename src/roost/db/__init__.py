"""Durable user state: one row for each (type, user), whose owner and epoch say who may write.

`database.open_database(url)` gives a `Database`; `docs/database.md` says what each database promises.
"""
