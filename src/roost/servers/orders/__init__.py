"""The reference order server: books of symbols in lanes, on a durable log."""
