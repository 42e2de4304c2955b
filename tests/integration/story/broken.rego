package inquest.approval

require_approval := this is not Rego
