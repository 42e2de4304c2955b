"""What the controllers of a control plane do that tests need.

A Deployment gets its ReplicaSet and pods, a Job its pod, and both see how these fare. There is neither a scheduler nor
a kubelet: a test says how a pod fares.
"""

from __future__ import annotations

import copy
import hashlib
import json
import threading
import uuid
from typing import Any, Final

from tests.support.apiserver.kinds import Kind
from tests.support.apiserver.store import Store, Write, now_text

Object = dict[str, Any]

HERE: Final = Write(manager="kube-controller-manager")
STATUS: Final = Write(manager="kube-controller-manager", subresource="status")
POD: Final[Object] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
}
"""What the API server and its admission write into every pod."""
GIVEN_UP: Final[Object] = {"reason": "BackoffLimitExceeded", "message": "Job has reached its backoff limit"}
EXCEEDED: Final[Object] = {"reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}
SOON: Final = 60
"""Seconds; a Job whose deadline is later is not waited for: no test lives so long."""
ROOT_CA: Final = "kube-root-ca.crt"
HASH: Final = "pod-template-hash"


def complete_pod(word: str, kind: Kind, old: Object | None, new: Object | None, write: Write) -> None:
    """A hook: the fields of a new pod that nobody wrote."""
    if word == "CREATE" and kind.key == ("", "pods") and new is not None:
        new["spec"] = POD | new["spec"]
        _mount_token(new["spec"])
        new.setdefault("status", {}).setdefault("phase", "Pending")


def _mount_token(spec: Object) -> None:
    """As the admission of service accounts does it."""
    if spec.get("automountServiceAccountToken") is False:
        return
    name = f"kube-api-access-{uuid.uuid4().hex[:5]}"
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    spec["volumes"] = [*spec.get("volumes", ()), {"name": name, "projected": {"sources": sources, "defaultMode": 420}}]
    mount = {"name": name, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        container["volumeMounts"] = [*container.get("volumeMounts", ()), mount]


class Controllers:
    """Reacts at once, inside of the write that it reacts to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._deployments, self._sets = store.kind("apps", "deployments"), store.kind("apps", "replicasets")
        self._jobs, self._pods = store.kind("batch", "jobs"), store.kind("", "pods")
        self._accounts = store.kind("", "serviceaccounts")

    def react(self, kind: Kind, obj: Object) -> None:
        """After a write of an object."""
        if obj["metadata"].get("deletionTimestamp"):
            return
        match kind.plural:
            case "namespaces":
                self._furnish(obj)
            case "deployments":
                self._roll_out(obj)
            case "jobs":
                self._start(obj)
            case "pods":
                self._fared(obj)

    def _furnish(self, place: Object) -> None:
        """The default account of a namespace, and the authority that its pods are to trust."""
        name = place["metadata"]["name"]
        if self._store.find(self._accounts, name, "default") is None:
            self._store.create(self._accounts, name, {"metadata": {"name": "default"}}, HERE)
            authority = {"metadata": {"name": ROOT_CA}, "data": {"ca.crt": "none: plain HTTP\n"}}
            self._store.create(self._store.kind("", "configmaps"), name, authority, HERE)

    # --- Deployments ----------------------------------------------------------------------------------------

    def _roll_out(self, deployment: Object) -> None:
        meta, spec = deployment["metadata"], deployment["spec"]
        if spec.get("paused"):
            return
        place, template = meta["namespace"], spec["template"]
        name = f"{meta['name']}-{_digest(template)}"
        mine = self._sets_of(deployment)
        current = next((one for one in mine if one["metadata"]["name"] == name), None)
        if current is None:
            labels = {**template["metadata"]["labels"], HASH: _digest(template)}
            body = {
                "metadata": {
                    "name": name,
                    "labels": labels,
                    "annotations": {"deployment.kubernetes.io/revision": str(len(mine) + 1)},
                    "ownerReferences": [_owner(self._deployments, deployment)],
                },
                "spec": {
                    "replicas": spec.get("replicas", 1),
                    "selector": {"matchLabels": labels},
                    "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
                },
            }
            current = self._store.create(self._sets, place, body, HERE)
        wanted = spec.get("replicas", 1)
        self._scale(current, wanted)
        is_recreated = (spec.get("strategy") or {}).get("type") == "Recreate"
        left = 0 if is_recreated else wanted - sum(_is_ready(pod) for pod in self._pods_of(current))
        for one in mine:
            if one["metadata"]["name"] != name:
                # The old pods go as the new ones become ready.
                self._scale(one, min(left, len(self._pods_of(one))))
        self._count(deployment)

    def _sets_of(self, deployment: Object) -> list[Object]:
        return [
            one for one in self._store.list(self._sets, deployment["metadata"]["namespace"]) if _is_of(one, deployment)
        ]

    def _pods_of(self, owner: Object) -> list[Object]:
        return [one for one in self._store.list(self._pods, owner["metadata"]["namespace"]) if _is_of(one, owner)]

    def _scale(self, held: Object, wanted: int) -> None:
        meta, pods = held["metadata"], self._pods_of(held)
        for pod in pods[wanted:]:
            self._store.delete(self._pods, meta["namespace"], pod["metadata"]["name"], HERE)
        template = held["spec"]["template"]
        for _ in range(wanted - len(pods)):
            self._pod(meta["namespace"], f"{meta['name']}-", template, _owner(self._sets, held))

    def _pod(self, namespace: str, prefix: str, template: Object, owner: Object) -> None:
        labels = (template.get("metadata") or {}).get("labels") or {}
        meta = {"generateName": prefix, "labels": labels, "ownerReferences": [owner]}
        body = {"metadata": meta, "spec": copy.deepcopy(template["spec"]), "status": {"phase": "Pending"}}
        self._store.create(self._pods, namespace, body, HERE)

    def _count(self, deployment: Object) -> None:
        """How its pods fare, in the status of each ReplicaSet and of the Deployment."""
        place, meta = deployment["metadata"]["namespace"], deployment["metadata"]
        totals = {"replicas": 0, "readyReplicas": 0, "availableReplicas": 0, "updatedReplicas": 0}
        current = f"{meta['name']}-{_digest(deployment['spec']['template'])}"
        for one in self._sets_of(deployment):
            pods = self._pods_of(one)
            ready = sum(_is_ready(pod) for pod in pods)
            counts = {"replicas": len(pods), "readyReplicas": ready, "availableReplicas": ready}
            self._tell(self._sets, one, {"observedGeneration": one["metadata"]["generation"], **_some(counts)})
            for key, count in counts.items():
                totals[key] += count
            totals["updatedReplicas"] += len(pods) if one["metadata"]["name"] == current else 0
        there = self._store.find(self._deployments, place, meta["name"])
        if there is not None:
            status = {"observedGeneration": there["metadata"]["generation"], **_some(totals)}
            short = there["spec"].get("replicas", 1) - totals["availableReplicas"]
            status |= {"unavailableReplicas": short} if short > 0 else {}
            self._tell(self._deployments, there, status)

    def _tell(self, kind: Kind, obj: Object, status: Object) -> None:
        if obj.get("status") != status:
            self._store.update(kind, obj, {**obj, "status": status}, STATUS)

    # --- Jobs -----------------------------------------------------------------------------------------------

    def _start(self, job: Object) -> None:
        meta = job["metadata"]
        deadline = job["spec"].get("activeDeadlineSeconds", SOON)
        if deadline < SOON:
            timer = threading.Timer(deadline, self._exceeded, (meta["namespace"], meta["name"], meta["uid"]))
            timer.daemon = True
            timer.start()
        if job.get("status") or job["spec"].get("suspend") or self._pods_of(job):
            return
        template = copy.deepcopy(job["spec"]["template"])
        labels = template.setdefault("metadata", {}).setdefault("labels", {})
        labels |= {"batch.kubernetes.io/controller-uid": meta["uid"], "batch.kubernetes.io/job-name": meta["name"]}
        labels |= {"controller-uid": meta["uid"], "job-name": meta["name"]}
        self._tell(self._jobs, job, {"active": 1, "ready": 0, "startTime": meta["creationTimestamp"]})
        self._pod(meta["namespace"], f"{meta['name']}-", template, _owner(self._jobs, job))

    def _fared(self, pod: Object) -> None:
        place = pod["metadata"]["namespace"]
        for ref in pod["metadata"].get("ownerReferences") or ():
            if ref["kind"] == "Job" and (job := self._store.find(self._jobs, place, ref["name"])):
                phase = (pod.get("status") or {}).get("phase", "")
                if phase in ("Succeeded", "Failed"):
                    self._end(job, {} if phase == "Succeeded" else GIVEN_UP)
            if ref["kind"] == "ReplicaSet" and (held := self._store.find(self._sets, place, ref["name"])):
                self._of_set(held, is_ready=_is_ready(pod))

    def _of_set(self, held: Object, *, is_ready: bool) -> None:
        for ref in held["metadata"].get("ownerReferences") or ():
            found = self._store.find(self._deployments, held["metadata"]["namespace"], ref["name"])
            if found is not None and is_ready:
                self._roll_out(found)
            elif found is not None:
                self._count(found)

    def _exceeded(self, namespace: str, name: str, uid: str) -> None:
        with self._store.lock:
            job = self._store.find(self._jobs, namespace, name)
            if job is not None and job["metadata"]["uid"] == uid:
                self._end(job, EXCEEDED)

    def _end(self, job: Object, failure: Object) -> None:
        """`failure`: reason and message, empty where it has succeeded."""
        if (job.get("status") or {}).get("conditions"):
            return
        at, is_well = now_text(), not failure
        condition = {"type": "Complete" if is_well else "Failed", "status": "True"}
        condition |= {"lastTransitionTime": at, "lastProbeTime": at, **failure}
        status = {"startTime": job["metadata"]["creationTimestamp"], "conditions": [condition], "ready": 0}
        status |= {"succeeded": 1, "completionTime": at} if is_well else {"failed": 1}
        self._tell(self._jobs, job, status)


def _digest(template: Object) -> str:
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]


def _owner(kind: Kind, obj: Object) -> Object:
    ref = {"apiVersion": kind.api_version, "kind": kind.kind, "name": obj["metadata"]["name"]}
    return {**ref, "uid": obj["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}


def _is_of(obj: Object, owner: Object) -> bool:
    return any(ref["uid"] == owner["metadata"]["uid"] for ref in obj["metadata"].get("ownerReferences") or ())


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {key: count for key, count in counts.items() if count}
