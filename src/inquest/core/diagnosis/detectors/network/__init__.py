"""Detectors of Services, policies, DNS, Ingresses and addresses. Each is a pure function of a snapshot."""
