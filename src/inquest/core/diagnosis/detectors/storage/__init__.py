"""Detectors of volumes and full disks. Each is a pure function of a snapshot."""
