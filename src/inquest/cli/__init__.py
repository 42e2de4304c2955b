"""The command line: `inquest run` and what people ask of it."""
