"""How often the scripts of a store have answered, by the word of their answer."""

from __future__ import annotations

from roost.store.store import Store


def replies(store: Store, word: str) -> int:
    return sum(script.stats.words[word] for script in store.library.scripts.values())
