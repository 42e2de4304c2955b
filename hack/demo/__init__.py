"""`make demo`: one case, really played, from a killed pod to a verified fix."""
