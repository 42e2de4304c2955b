# Asks where the business depends on the target.
package inquest.approval

factors contains {"score": 68, "reason": "The service is critical"} if {
	input.business_classification.criticality in {"Critical", "High"}
}
