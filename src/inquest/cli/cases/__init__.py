"""The commands about cases. Each parses, calls, prints."""
