"""What the parts of an installation are called."""

from __future__ import annotations

from typing import Final

NAMESPACE: Final = "inquest-system"
INSTALL: Final = f"helm install inquest charts/inquest -n {NAMESPACE} --create-namespace"
"""What brings the kinds, and all else, into a cluster."""
EXECUTION_NAMESPACE: Final = "inquest-workflows"
SERVICE_ACCOUNT: Final = "inquest"
INVESTIGATOR_ACCOUNT: Final = "inquest-investigator"
DATASTORAGE_ACCOUNT: Final = "inquest-datastorage"
WATCHING: Final = "inquest-watched"
CONFINED_BINDING: Final = "inquest-installed"
"""The only binding in the whole cluster of an operator that looks after single namespaces."""
DATASTORAGE_CLIENT: Final = "data-storage-client"
"""The role's name on Kubernaut, so that a binding fits either service."""
DATASTORAGE_SERVICE: Final = "data-storage-service"
