"""Reconciles WorkflowExecutions: starts the Job, watches it, looks whether it helped.

Starts nothing that is not approved.
"""
