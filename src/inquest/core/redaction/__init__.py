"""Takes secrets out of objects and texts before anything leaves the process. Fails closed."""
