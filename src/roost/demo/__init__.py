"""The demo fleet of a first start: servers and synthetic players under names of their own.

`fleet.py` runs it inside `roost up`, which starts its processes (`python -m roost.demo`). Whatever it leaves
in the store is taken out by `purge.py`; what it writes to a database lies in a folder of its own.
"""
