"""Ordered work, sharded, with one owner for each shard and a durable log."""
