"""A recorded case as a cluster (cases): `case` reads the folder, `cluster` answers the product's reads from it.

    case = read_case(Path("tests/scenarios/memory/oom"))
    cluster = RecordedCluster(case)

`metrics` answers for Prometheus; `kinds` and `selectors` are what an API server knows by
itself, `clock` starts when the case was recorded, `eyes` adds what other checks printed, `nobody` stands where a live
product would write.
"""

from inquest.adapters.recorded.case import RecordedCase, read_case
from inquest.adapters.recorded.clock import RecordedClock
from inquest.adapters.recorded.cluster import RecordedCluster
from inquest.adapters.recorded.eyes import RecordedEyes
from inquest.adapters.recorded.metrics import RecordedMetrics
from inquest.adapters.recorded.nobody import NoRuling, ReadOnly, Silence
from inquest.adapters.recorded.yamls import BadCase

__all__ = [
    "BadCase",
    "NoRuling",
    "ReadOnly",
    "RecordedCase",
    "RecordedClock",
    "RecordedCluster",
    "RecordedEyes",
    "RecordedMetrics",
    "Silence",
    "read_case",
]
