"""The approval policy, asked of OPA. What it does not answer is no approval."""
