"""The bundled DataStorage service: catalogue, audit events, effectiveness and history behind one HTTP wire.

Read in this order: `wire`, `identity` and `parameters` (texts of the wire), `discovery` (who is offered, in which
order), `content` and `registration` (what may enter the catalogue), `events` and `chain` (what an audit event is),
`effectiveness` and `history` (what stored events say), all of them pure; then `tables`, `database`, `catalogue`,
`ledger` and `past` (the same with SQL), and at last `app` with its handlers.

The reference is the wire profile `kubernaut-1.4`; whatever goes beyond it is a superset.
"""
