"""Revisions of the schema; they run at start, inside the service's own connection."""
