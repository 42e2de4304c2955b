"""The plot: pure functions over frozen values, to be read in order.

signal, triage, evidence, detectors, playbooks, inquiry, reply, rca, selection, outcome, judgement, remedy,
effectiveness, history, plot, chronicle. Nothing here does I/O or reads a clock.
"""
