"""Drills: what a bad evening would do, done on purpose, with a verdict on the guarantees."""
