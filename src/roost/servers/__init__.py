"""Servers that Roost ships: clients of its own SDK, like everybody's."""
