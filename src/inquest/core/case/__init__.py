"""One investigation as facts, state and next step. Every step is named here and performed by a controller."""
