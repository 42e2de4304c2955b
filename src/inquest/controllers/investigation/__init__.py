"""Reconciles Investigations: one step after the other until the case ends. Decides nothing that `core` can decide."""
