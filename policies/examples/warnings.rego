# Asks wherever the investigation has a warning or a label could not be detected.
package inquest.approval

factors contains {"score": 55, "reason": "The investigation has warnings"} if {
	count(object.get(input, "warnings", [])) > 0
}

factors contains {"score": 50, "reason": "Some labels could not be detected"} if {
	count(object.get(input, "failed_detections", [])) > 0
}
