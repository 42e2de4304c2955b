"""The command line: `inquest run` and what people ask of it. Each command parses, calls, prints; it decides nothing."""
