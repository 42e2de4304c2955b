"""Least privilege, proved by what the API server writes down: what our accounts were refused, and what they never used.

`audit` reads the log, `grants` the roles and bindings, `judging` compares the two, `known` says what is expected, and
`standing` takes all of that from a cluster that runs.
"""
