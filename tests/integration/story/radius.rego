package inquest.approval

require_approval := true

reason := sprintf("%v", [input.inquest.blast_radius])
