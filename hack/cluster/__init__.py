"""A real Kubernetes on this machine, from built binaries alone: no Docker, no registry.

`python -m hack.cluster` is the command, `hack.cluster.local` the library. Read on in `local`, which says what runs
when; `state` and `process` keep it apart from everything else on the machine; `controlplane`, `simulated`, `node` and
`metrics` are the parts.
"""
