"""The wire of DataStorage: types, parameters, its description. Knows no database."""
