"""What stored facts mean: scoring, content, hash chain, effectiveness. Pure."""
