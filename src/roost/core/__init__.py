"""The pure vocabulary: no I/O, no Redis, no clock of its own."""
