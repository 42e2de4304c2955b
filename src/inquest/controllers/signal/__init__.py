"""Reconciles Signals: triage, opening a case, following it. Works on no case itself."""
