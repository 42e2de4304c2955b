"""Logs, metrics and traces: every name in one place, set up once by the process.

Labels are bounded and carry no name of a resource, signal or workflow.
"""
