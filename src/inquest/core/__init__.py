"""Every decision about a case: pure functions over frozen values. Nothing here does I/O or reads a clock.

Read the packages in the order of a case, each of which imports only those before it: `text`, `redaction`, `evidence`
(what was read), `cluster` (what the objects say), `history` (what was tried before), `signals` (what deserves a case),
`diagnosis` (why it is broken), `llm` (the conversation with a model), `selection` (which workflow), `remediation` (may
it run, did it help), `case` (facts, and the next step), `reporting` (what is told of it all).
"""
