"""Detectors of revisions and rollouts. Each is a pure function of a snapshot."""
