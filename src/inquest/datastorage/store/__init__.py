"""The tables of DataStorage on SQLite and PostgreSQL. Knows no HTTP."""
