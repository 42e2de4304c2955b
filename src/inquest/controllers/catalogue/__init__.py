"""Reconciles ActionTypes and RemediationWorkflows, and says which of them may run. Runs none."""
