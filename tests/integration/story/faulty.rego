package inquest.approval

require_approval := false if input.remediation_target.name in {"sound", "absent"}

require_approval := "no" if input.remediation_target.name == "mistyped"

require_approval := false if input.remediation_target.name == "contradictory"

require_approval := true if input.remediation_target.name == "contradictory"

require_approval := false if {
	input.remediation_target.name == "slow"
	xs := numbers.range(1, 6000)
	count([1 | some a in xs; some b in xs; some c in xs; (a * b) + c < 0]) == 0
}
