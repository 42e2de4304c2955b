"""One handler for each operation of the wire. Parses, calls the store, answers."""
