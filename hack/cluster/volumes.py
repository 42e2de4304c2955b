"""A volume for the real node: nothing there makes volumes on demand, so one is laid ready for whoever claims first.

It is a folder of the cluster's own state, given as a `local` volume: the kubelet hands it to the group of the pod, as
it does with a disk.
"""

from __future__ import annotations

import json
import shutil

from hack.cluster.node import NODE
from hack.cluster.site import Site

NAME = "inquest"
SIZE = "5Gi"
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def offer_volume(site: Site) -> None:
    """Have one empty volume that a claim without a class gets; whatever the last one held is gone."""
    site.kubectl("delete", "persistentvolume", NAME, "--ignore-not-found", "--timeout=60s")
    folder = site.folder / "volume"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": [_storage_class(), _volume(str(folder))]})
    site.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)


def _storage_class() -> dict[str, object]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": NAME, "annotations": DEFAULT},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(folder: str) -> dict[str, object]:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": NAME},
        "spec": {
            "capacity": {"storage": SIZE},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": NAME,
            "local": {"path": folder},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
