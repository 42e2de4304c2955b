"""How much a snapshot may read, keep and show: every bound of this package, in one place."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

START_PAUSES: Final = (1.0,)
"""Seconds before each further try of the target itself."""

# --- objects in the bag ----------------------------------------------------------------------------------

MAX_PODS: Final = 50
"""Pods of the target."""
MAX_NEIGHBOURS: Final = 30
"""Other pods of the namespace, the unwell first; the rest are rows."""
MAX_EVENTS: Final = 100
MAX_OTHER_EVENTS: Final = 40
"""Normal events that tell of a change."""
MAX_ROWS: Final = 50
"""Objects of any other listing."""
MAX_NODES: Final = 5
"""Nodes that are read one by one."""
MAX_JOBS: Final = 10
MAX_GETS: Final = 10
"""Objects of one kind that are read by name."""
MAX_CONFIG_MAPS: Final = 16
MAX_REMAINING: Final = 6
"""Kinds of which something remains in a namespace that goes."""
MAX_MESSAGE: Final = 4_000
"""Characters of a condition's message in which names are looked for."""
MAX_OWNERS_NAMED: Final = 5
"""Owners of pods on a node, the worst pods first."""
MAX_CALLED: Final = 3
"""Services of other namespaces that the target calls."""
MAX_BEYOND: Final = 5
"""Pods behind a Service of another namespace that the target calls, and warnings there."""
MAX_TAKERS: Final = 3
"""Nodes on which pods had to leave for others, and those others."""
MAX_CARRIERS: Final = 3
"""Classes of Ingresses, pods of a controller, and what else is read of one."""
REVISIONS: Final = 2
RECENT: Final = timedelta(hours=1)
"""How long before the trouble a change is still of interest."""

# --- what a listing asks of the server -------------------------------------------------------------------

MAX_LISTED: Final = 500
MAX_LISTED_NODES: Final = 100

# --- logs ------------------------------------------------------------------------------------------------

MAX_FAILING: Final = 8
"""Containers of the target that fail."""
MAX_FAILING_NEIGHBOURS: Final = 4
MAX_FAILING_SYSTEM: Final = 3
MAX_COMPONENTS: Final = 4
"""Parts of the cluster that run and are asked what they say."""
MAX_WITNESSES: Final = 4
"""Containers of the target that run well."""
MAX_CALLED_LOGS: Final = 3
"""Containers behind the Services that the target calls."""
LOG_LINES: Final = 200
LOG_BYTES: Final = 65_536
MAX_LINE: Final = 2_000
"""Characters of a line in which a word is looked for."""

# --- characters ------------------------------------------------------------------------------------------

MAX_PAGES: Final = 4
"""Entries of one listing."""
MAX_BESIDES: Final = 2_000
"""Of the names of what a listing does not keep."""
MAX_TEXT: Final = 32_000
"""Of a text that something else printed."""
MAX_CHARACTERS: Final = 1_200_000
"""Of all entries together; what comes later is left out, and said to be cut."""
