"""What code concludes from a snapshot without a model: one module for each detector, a table, a ranking.

Each detector is a pure function `(Snapshot) -> Iterable[Finding]` with a row in `registry`; none asks anybody anything.
They share what reads objects (`workloads`, `containers`, `events`, `revisions`) and what makes a conclusion of them
(`citations`, `findings`); `links`, `causality` and `ranking` put the findings in order.
"""
