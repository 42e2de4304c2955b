"""From a snapshot to causes that evidence proves. Proposes no action."""
