"""One workflow of the catalogue for a diagnosis, with its parameters. Changes nothing."""
