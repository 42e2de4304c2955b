"""CRDs, admission policies and roles, generated from the models. Pure."""
