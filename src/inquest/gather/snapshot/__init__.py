"""Collects the objects, logs and events that belong to a target. What could not be read is a gap."""
