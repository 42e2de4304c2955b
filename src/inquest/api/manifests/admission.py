"""Admission policies: who may create, decide and write status, asked by the API server itself.

No webhook, so nothing can be away. A policy cannot guard policies, therefore the operator looks for
them (`not_in_force`) at start and every minute, and acts on no approval while one is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Template
from typing import Any, Final

import yaml

from inquest.api import approval
from inquest.api.installation import EXECUTION_NAMESPACE, INVESTIGATOR_ACCOUNT, NAMESPACE, SERVICE_ACCOUNT
from inquest.tables import read_text

Manifest = dict[str, Any]
_BOUNDS: Final = {name: str(most) for name, most in vars(approval).items() if name.startswith("MAX_")}


def render_policies(
    namespace: str = NAMESPACE,
    service_account: str = SERVICE_ACCOUNT,
    execution_namespace: str = EXECUTION_NAMESPACE,
    investigator: str = INVESTIGATOR_ACCOUNT,
) -> list[Manifest]:
    """The validating policies of `admission.yaml`, each with the binding that denies."""
    names = {
        "operator": _account(namespace, service_account),
        "investigator": _account(namespace, investigator),
        "execution": execution_namespace,
        "runners": _account(execution_namespace, ""),
    }
    return _bound("admission.yaml", names, {"validationActions": ["Deny", "Audit"]})


def render_mutating(namespace: str = NAMESPACE, service_account: str = SERVICE_ACCOUNT) -> list[Manifest]:
    """The policies of `signature.yaml`, each with its binding."""
    entries = ", ".join(map(str, range(approval.MAX_ENTRIES)))
    return _bound("signature.yaml", {"operator": _account(namespace, service_account), "entries": entries}, {})


def _account(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def _bound(file: str, names: Mapping[str, str], how: Manifest) -> list[Manifest]:
    found = []
    for policy in yaml.load_all(read_text(__package__, file), yaml.CSafeLoader):
        head = {"apiVersion": policy["apiVersion"], "kind": f"{policy['kind']}Binding", "metadata": policy["metadata"]}
        found += [
            _filled(policy, {**_BOUNDS, **names}),
            head | {"spec": {"policyName": policy["metadata"]["name"], **how}},
        ]
    return found


def _filled(part: Any, names: Mapping[str, str]) -> Any:
    """What stands in ${…} is filled in after the text was parsed: no name can become another part of it."""
    if isinstance(part, dict):
        return {key: _filled(value, names) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(one, names) for one in part]
    return Template(part).substitute(names) if isinstance(part, str) else part


def not_in_force(found: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """`Kind/name` of every wanted policy or binding that is missing or says something else."""
    there = {_identity(one): one.get("spec") for one in found}
    return tuple(_identity(one) for one in wanted if not _says_the_same(there.get(_identity(one)), one["spec"]))


def _identity(found: Mapping[str, Any]) -> str:
    return f"{found['kind']}/{found['metadata']['name']}"


_FILLED_IN: Final[Mapping[str, Any]] = {
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "scope": "*",
}
"""What the API server adds to a policy by itself; any other addition is somebody's exception."""


def _says_the_same(found: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        added = {key: value for key, value in found.items() if key not in wanted}
        same = all(key in found and _says_the_same(found[key], wanted[key]) for key in wanted)
        return same and all(key in _FILLED_IN and value == _FILLED_IN[key] for key, value in added.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(_says_the_same, found, wanted))
    return found == wanted
