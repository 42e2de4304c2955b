"""What was tried before on the same target, and what to learn from it. Reads records, never the cluster."""
