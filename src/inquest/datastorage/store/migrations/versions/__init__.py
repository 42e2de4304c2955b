"""One module for each revision, the same for SQLite and PostgreSQL."""
