package inquest.examples_test

import data.inquest.approval

calm := {
	"environment": "staging",
	"confidence": 0.9,
	"confidence_threshold": 0.8,
	"remediation_target": {"kind": "Deployment", "name": "checkout", "namespace": "shop", "api_version": "apps/v1"},
	"warnings": [],
	"failed_detections": [],
	"detected_labels": {"git_ops_managed": false},
	"business_classification": {"criticality": "Medium"},
	"custom_labels": {},
}

stirred(change, reason) if {
	document := object.union(calm, change)
	approval.require_approval with input as document
	some factor in approval.risk_factors with input as document
	factor.reason == reason
}

target(kind, version) := {"remediation_target": {"kind": kind, "api_version": version}}

test_a_calm_case_approves_itself if {
	not approval.require_approval with input as calm
}

test_low_confidence if stirred({"confidence": 0.79}, "Confidence is below the threshold")

test_warnings if stirred({"warnings": ["NoClaims"]}, "The investigation has warnings")

test_failed_detections if stirred({"failed_detections": ["pdbProtected"]}, "Some labels could not be detected")

test_sensitive_anywhere if stirred(target("StatefulSet", "apps/v1"), "Sensitive resource kind")

test_custom_resources if stirred(target("Cluster", "postgresql.cnpg.io/v1"), "The target is a custom resource")

test_core_kinds_are_no_custom_resources if {
	document := object.union(calm, target("ConfigMap", "v1"))
	not approval.require_approval with input as document
}

test_network_policies_are_no_custom_resources if {
	document := object.union(calm, target("NetworkPolicy", "networking.k8s.io/v1"))
	not approval.require_approval with input as document
}

test_gitops if stirred({"detected_labels": {"git_ops_managed": true}}, "The target is managed by GitOps")

test_criticality if stirred({"business_classification": {"criticality": "Critical"}}, "The service is critical")

test_label if stirred({"custom_labels": {"approval_required": ["true"]}}, "The label approval-required is set")
