"""`ports.DataStorage` over HTTP: the bundled service in process or elsewhere, or Kubernaut's own (datastorage, 12).

Read in this order: `texts` and `profiles`, `sent` (what goes out), `peer` (a workflow in the peer's form), `answers`
(what comes back), `line` (the box around a call), `chains` (whether records hold), `client`. Whatever is not understood
is "unavailable", never "empty".
"""

from inquest.adapters.datastorage.client import ClusterId, DataStorageClient, nowhere
from inquest.adapters.datastorage.line import OPEN_AFTER_FAILURES, READ_SECONDS, Box, Breaker, token_of
from inquest.adapters.datastorage.peer import NotExpressible, peer_content
from inquest.adapters.datastorage.profiles import PROFILES, Profile, ProfileName
from inquest.adapters.datastorage.sent import detected_parameter, discovery_parameters, event_body

__all__ = [
    "OPEN_AFTER_FAILURES",
    "PROFILES",
    "READ_SECONDS",
    "Box",
    "Breaker",
    "ClusterId",
    "DataStorageClient",
    "NotExpressible",
    "Profile",
    "ProfileName",
    "detected_parameter",
    "discovery_parameters",
    "event_body",
    "nowhere",
    "peer_content",
    "token_of",
]
