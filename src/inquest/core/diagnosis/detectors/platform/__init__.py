"""Detectors of the control plane, admission, rights, certificates and finalizers.

Each is a pure function of a snapshot.
"""
