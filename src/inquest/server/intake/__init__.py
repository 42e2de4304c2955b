"""Takes Signals over HTTP and from Warning events. Whether a Signal deserves a case is not decided here."""
