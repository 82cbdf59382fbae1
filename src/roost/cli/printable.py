"""What others wrote, before a terminal gets it."""

from __future__ import annotations


def printable(text: str) -> str:
    """Lines stay lines; whatever else would move the cursor or command the terminal is a question mark."""
    if text.isprintable():
        return text
    return "".join(char if char == "\n" or char.isprintable() else "?" for char in text)


def in_a_line(text: str) -> str:
    return printable(text).replace("\n", "?")
