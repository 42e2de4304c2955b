"""`ports.DataStorage` over HTTP: the bundled service in process or elsewhere, or Kubernaut's own (datastorage, 12).

Read in this order: `texts` and `profiles`, `sent` (what goes out), `peer` (a workflow in the peer's form), `answers`
(what comes back), `line` (the box around a call), `chains` (whether records hold), `client`. Whatever is not understood
is "unavailable", never "empty".
"""
