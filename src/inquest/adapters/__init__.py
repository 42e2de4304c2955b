"""One outside system each, behind a port. Errors become those of `inquest.errors` here; nothing is decided here."""
