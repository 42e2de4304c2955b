"""All that is fixed before the first turn: tools, gates, seed calls. Calls nobody."""
