"""The bundled DataStorage service: catalogue, audit events, effectiveness and history behind one HTTP wire.

Read `wire` (types and parameters), `domain` (what stored facts mean, pure), `store` (the same with SQL), `routes` and
`app`. It knows nothing of Kubernetes or of a case; its reference is the wire profile `kubernaut-1.4`.
"""
