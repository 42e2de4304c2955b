"""The contract: what Inquest's six kinds carry, and what follows from that alone.

To be read in this order: `meta` (the frame of every kind), `shared` (words and types that several
kinds use), `signal`, `investigation`, `approval`, `catalogue`, `execution` (the kinds), `conditions`,
`names`, `rbac`, `admission`, `registry`, `generate` (the CRDs). Everything is a frozen value or a
pure function of its arguments; nothing here talks to a cluster or reads a clock.
"""
