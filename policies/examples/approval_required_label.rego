# Asks where the custom label `approval-required` says so; the setting classification.customLabels must list it.
package inquest.approval

factors contains {"score": 66, "reason": "The label approval-required is set"} if {
	"true" in input.custom_labels.approval_required
}
