"""Reads the world for a case, through `ports` and redacted. Writes nothing."""
