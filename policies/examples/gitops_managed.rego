# Asks where a GitOps tool owns the manifest: it would take the change back.
package inquest.approval

factors contains {"score": 72, "reason": "The target is managed by GitOps"} if {
	input.detected_labels.git_ops_managed == true
}
