"""Least privilege in the store: one user for each role, with the rights that its scripts and calls need.

`uses` says what the parts of each capability do, `roles` which parts a role has; `rights` makes key patterns,
channels and commands of that, from the contracts and sources of the scripts. The files of `deploy/redis`,
`docs/acl.md` and what `roost doctor` asks the store are made from the same.
"""
