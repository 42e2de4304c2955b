"""The contract: what Inquest's six kinds carry, and what follows from that alone.

Read `base` (the frame of every kind), `types` and `refs` (words and references that several kinds use), the kinds
(`signal`, `investigation` with `findings`, `approval`, `catalogue`, `execution`), `conditions`, `names`, `registry`,
and `manifests`, which makes CRDs, policies and roles of them. Pure: nothing here talks to a cluster or reads a clock.
"""
