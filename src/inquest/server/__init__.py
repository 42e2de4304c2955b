"""What the operator serves over HTTP: intake, evidence, DataStorage. Decides nothing about a case."""
