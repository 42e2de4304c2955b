"""What was read of a cluster, and what could not be read. Knows no cause and no case."""
