"""Prometheus, Loki and Alertmanager, and their query languages. Queries are confined to the namespaces of a case."""
