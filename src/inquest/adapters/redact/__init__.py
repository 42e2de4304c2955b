"""The redactor: what may leave the house (pipeline, section 17; reliability, section 10.2).

To be read in this order: `gate` (the way a text takes), `structure` (objects), `documents` (texts that hold objects),
`keys` (names that say that a value is secret), `pairs`, `shapes`, `encoded` (plain text), `known` (our own secrets).
"""

from inquest.adapters.redact.gate import MAX_CHARACTERS, Redactor
from inquest.adapters.redact.keys import is_sensitive
from inquest.adapters.redact.marks import MARK, WITHHELD

__all__ = ["MARK", "MAX_CHARACTERS", "WITHHELD", "Redactor", "is_sensitive"]
