"""The read-only tools that a model may call. What a model names is checked before it is read."""
