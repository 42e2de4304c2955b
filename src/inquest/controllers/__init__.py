"""One controller for each kind: observe, decide in `core`, act, publish. Reaches the world through `ports` alone."""
