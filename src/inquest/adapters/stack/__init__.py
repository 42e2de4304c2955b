"""What the adapters of a monitoring stack share: one way to ask over HTTP, and readers of the query languages.

line      one GET: token, time limits, size, what a refusal means
promql    the selectors of a query, so that a case's namespaces can be forced upon each
logql     the same of LogQL
selectors where a matcher goes, and which; why no library does it: decision 0013
"""

from __future__ import annotations

from inquest.adapters.stack.line import Address, Line
from inquest.adapters.stack.selectors import Confinement, Declined, Matcher, Selector

__all__ = ["Address", "Confinement", "Declined", "Line", "Matcher", "Selector"]
