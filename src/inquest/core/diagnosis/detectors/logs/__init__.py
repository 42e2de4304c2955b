"""Detectors that read what programs print. Each is a pure function of a snapshot."""
