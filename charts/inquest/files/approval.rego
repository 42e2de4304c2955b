# METADATA
# title: When a person has to approve
# description: |
#   The default policy. Every rule that asks for a person adds a factor; without a factor nobody is asked.
#   To be stricter, copy this file and add rules of the form `factors contains … if …` (see policies/examples).
package inquest.approval

# --- what a rule can use -------------------------------------------------------------------------------

environment := lower(object.get(input, "environment", ""))

known_environments := {"production", "staging", "development", "qa", "test"}

sensitive_kinds := {"Node", "StatefulSet"}

default threshold := 0.8

threshold := input.confidence_threshold if is_number(input.confidence_threshold)

default is_high_confidence := false

is_high_confidence if {
	is_number(input.confidence)
	input.confidence >= threshold
}

default is_production := false

is_production if environment == "production"

default has_target := false

has_target if {
	is_string(input.remediation_target.kind)
	input.remediation_target.kind != ""
}

default is_sensitive := false

is_sensitive if input.remediation_target.kind in sensitive_kinds

# --- the rules -----------------------------------------------------------------------------------------

# P1: nobody can judge a change to nothing.
factors contains {"score": 90, "reason": "Remediation target is missing"} if not has_target

# P2: what holds data or carries other workloads.
factors contains {"score": 80, "reason": "Production environment with sensitive resource kind"} if {
	is_production
	is_sensitive
}

# P3: production asks, whatever the confidence.
factors contains {"score": 70, "reason": "Production environment"} if is_production

# P4: the environments that approve by themselves are a closed list.
factors contains {"score": 60, "reason": "Environment is unknown"} if not environment in known_environments

# --- the answer ----------------------------------------------------------------------------------------

require_approval := count(factors) > 0

# Highest score first, equal scores by text; scores never change the decision.
risk_factors := [{"score": 0 - key[0], "reason": key[1]} |
	some key in sort({[0 - factor.score, factor.reason] | some factor in factors})
]

default reason := "Auto-approved by policy"

reason := risk_factors[0].reason

default deny := false
