package inquest.approval_test

import data.inquest.approval

target(kind) := {"kind": kind, "name": "checkout", "namespace": "shop", "api_version": "apps/v1"}

staging := {
	"environment": "staging",
	"confidence": 0.9,
	"confidence_threshold": 0.8,
	"remediation_target": target("Deployment"),
	"warnings": [],
	"failed_detections": [],
}

with_environment(environment) := object.union(staging, {"environment": environment})

with_kind(environment, kind) := object.union(with_environment(environment), {"remediation_target": target(kind)})

no_factor(document) if {
	not approval.require_approval with input as document
	count(approval.risk_factors) == 0 with input as document
}

asks(document, score, reason) if {
	approval.require_approval with input as document
	approval.risk_factors[0] == {"score": score, "reason": reason} with input as document
	approval.reason == reason with input as document
}

# P1
test_p1_a_missing_target_asks_in_any_environment if {
	every environment in ["production", "staging", "development", "qa", "test", "unknown"] {
		asks(
			object.remove(with_environment(environment), ["remediation_target"]),
			90, "Remediation target is missing",
		)
	}
}

test_p1_null_and_an_empty_kind_are_missing_targets if {
	asks(object.union(staging, {"remediation_target": null}), 90, "Remediation target is missing")
	asks(with_kind("development", ""), 90, "Remediation target is missing")
	asks(with_kind("development", 7), 90, "Remediation target is missing")
}

test_p1_an_empty_document_asks if {
	asks({}, 90, "Remediation target is missing")
}

# P2
test_p2_sensitive_kinds_ask_in_production if {
	asks(with_kind("production", "Node"), 80, "Production environment with sensitive resource kind")
	asks(with_kind("Production", "StatefulSet"), 80, "Production environment with sensitive resource kind")
}

test_p2_sensitive_kinds_approve_themselves_elsewhere if {
	no_factor(with_kind("staging", "Node"))
	no_factor(with_kind("qa", "StatefulSet"))
}

test_p2_the_factors_are_sorted if {
	approval.risk_factors == [
		{"score": 80, "reason": "Production environment with sensitive resource kind"},
		{"score": 70, "reason": "Production environment"},
	] with input as with_kind("production", "Node")
}

# P3
test_p3_production_asks_whatever_the_confidence if {
	asks(object.union(with_environment("production"), {"confidence": 0.99}), 70, "Production environment")
	asks(with_environment("PRODUCTION"), 70, "Production environment")
}

# P4
test_p4_environments_that_are_not_on_the_list_ask if {
	every environment in ["unknown", "", "prod-eu", "sandbox"] {
		asks(with_environment(environment), 60, "Environment is unknown")
	}
}

test_p4_an_absent_environment_asks if {
	asks(object.remove(staging, ["environment"]), 60, "Environment is unknown")
}

# P5
test_p5_everything_else_is_automatic if {
	every environment in ["staging", "Staging", "development", "qa", "QA", "test"] {
		no_factor(with_environment(environment))
	}
	approval.reason == "Auto-approved by policy" with input as staging
}

test_p5_low_confidence_alone_does_not_ask if {
	no_factor(object.union(staging, {"confidence": 0.1}))
}

test_nothing_is_denied if {
	approval.deny == false with input as with_environment("production")
	approval.deny == false with input as {}
}

# C-RG-2
high_confidence_vectors := [
	{"confidence_threshold": 0.9, "confidence": 0.85, "expected": false},
	{"confidence_threshold": 0.7, "confidence": 0.85, "expected": true},
	{"confidence_threshold": 0.8, "confidence": 0.8, "expected": true},
	{"confidence": 0.85, "expected": true},
	{"confidence": 0.79, "expected": false},
	{"confidence_threshold": 0.95, "confidence": 0.92, "expected": false},
	{"confidence_threshold": 0.5, "confidence": 0.6, "expected": true},
]

test_c_rg_2_high_confidence if {
	every vector in high_confidence_vectors {
		approval.is_high_confidence == vector.expected with input as object.remove(vector, ["expected"])
	}
}

test_a_confidence_that_is_no_number_is_not_high if {
	approval.is_high_confidence == false with input as {"confidence_threshold": 0.8}
	approval.is_high_confidence == true with input as {"confidence_threshold": null, "confidence": 0.8}
}
