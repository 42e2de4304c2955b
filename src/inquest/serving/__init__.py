"""One HTTP application on one port: certificates, callers, problems. Shared by the operator and DataStorage."""
