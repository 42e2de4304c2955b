"""kopf, and the process around it: it says what changed, and everything else is decided elsewhere.

`watcher` runs kopf on a thread of its own, `supervisor` replaces it when it ends or falls silent, `lease` proves this
replica and its watch alive, `process` starts and ends all parts, `health` answers the kubelet.
"""
