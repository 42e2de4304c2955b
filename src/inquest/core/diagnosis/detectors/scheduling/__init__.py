"""Detectors of pods that get no node, and of what decides how many there are.

Each is a pure function of a snapshot.
"""
