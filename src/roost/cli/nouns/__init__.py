"""The nouns and verbs of `roost`, one module each: `app` is what `roost <module>` runs.

A module loads what it runs inside its commands: `roost --help` loads them all.
"""
