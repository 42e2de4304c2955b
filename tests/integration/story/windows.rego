package inquest.approval

require_approval := false

reason := concat(" ", array.concat(["open:"], input.inquest.freeze_windows))
