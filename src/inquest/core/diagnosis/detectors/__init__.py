"""What code concludes from a snapshot without a model: one module for each detector, a table, a ranking.

Each detector is a pure function `(Snapshot) -> Iterable[Finding]` with a row in `registry`; none asks anybody anything.
"""
