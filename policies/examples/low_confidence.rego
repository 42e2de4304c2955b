# Asks wherever the selected workflow's confidence is below the threshold.
package inquest.approval

factors contains {"score": 65, "reason": "Confidence is below the threshold"} if not is_high_confidence
