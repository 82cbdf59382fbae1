"""What operators did: who, when, from where, to what, and what came of it."""
