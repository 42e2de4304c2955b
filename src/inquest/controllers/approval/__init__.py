"""Reconciles RemediationApprovalRequests. A decision stands only as `core.remediation` says."""
