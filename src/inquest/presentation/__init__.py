"""One case as every face shows it, from what is stored of it. Pure; a face only draws it."""
