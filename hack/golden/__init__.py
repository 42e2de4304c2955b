"""Golden cases: everything that the product says of the recorded scenarios, held against what it said before."""
