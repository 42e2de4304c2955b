# Asks for a target of any API group that Kubernetes does not bring along.
package inquest.approval

built_in_groups := {"", "apps", "batch", "autoscaling", "policy"}

api_group := split(input.remediation_target.api_version, "/")[0] if contains(input.remediation_target.api_version, "/")

api_group := "" if not contains(input.remediation_target.api_version, "/")

is_built_in if api_group in built_in_groups

is_built_in if endswith(api_group, ".k8s.io")

factors contains {"score": 95, "reason": "The target is a custom resource"} if {
	has_target
	not is_built_in
}
