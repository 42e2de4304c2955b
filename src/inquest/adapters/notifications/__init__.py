"""Notices to people and Kubernetes events. Each notice goes out once for each receiver."""
