"""All that is told of a case, derived from its facts: status, events, notices, audit, figures. Decides nothing."""
