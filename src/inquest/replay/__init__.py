"""Recorded cases: read, played through the product, scored, exported. Writes to no cluster."""
