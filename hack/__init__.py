"""What a developer's machine needs beside Python: Go tools, container images and a local Kubernetes cluster.

Read in this order: `cache` says where everything lives, `tools` builds the binaries, `images` the container images,
`cluster` brings a real Kubernetes up from them. Nothing here is part of the product.
"""


class HackError(Exception):
    """Something a person has to look at; the message is all they need, so no traceback is shown."""
