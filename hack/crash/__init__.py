"""Crash everywhere: kill -9 of the operator at numbered port calls of the demo's case, and the same end after it."""
