"""Live runs of the scenarios: faults that are really there, told by a running operator."""
