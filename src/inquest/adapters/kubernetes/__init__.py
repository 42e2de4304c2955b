"""The API server through the official client. Errors become those of `inquest.errors` here."""
