"""The commands about an installation: doctor, cleanup, lint, policy, replay, DataStorage.

Each parses, calls, prints.
"""
