"""Inquest: signals in, proven root causes and approved fixes out."""

__version__ = "0.1.0"
