"""One case as every face shows it: what is stored of it, told as branches; a face only draws them.

    Told ──► tree         how far it is, and what was done           (`inquest get`)
         └─► explanation  why this cause, this workflow, this person (`inquest explain`, `inquest report`)

Pure: no clock, no I/O. Text of the cluster stands in it as it is stored; whoever draws it makes it visible.
"""

from inquest.view.branches import Branch, Mark, Section, branches
from inquest.view.drawing import as_markdown, as_sections, as_tree, cells
from inquest.view.explanation import explained
from inquest.view.told import Told
from inquest.view.tree import tree

__all__ = [
    "Branch",
    "Mark",
    "Section",
    "Told",
    "as_markdown",
    "as_sections",
    "as_tree",
    "branches",
    "cells",
    "explained",
    "tree",
]
