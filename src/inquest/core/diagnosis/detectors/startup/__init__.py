"""Detectors of containers that do not start, do not stay or do not pass their probes.

Each is a pure function of a snapshot.
"""
