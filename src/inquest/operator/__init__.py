"""kopf and nothing but kopf: it rings, and everything else is decided elsewhere (reliability, sections 2 and 3.7).

`watcher` runs one incarnation of kopf on a thread of its own, `supervisor` replaces it when it ends or falls silent,
`heartbeat` renews the Lease that proves this replica and its watch alive, `health` answers the kubelet.
"""
