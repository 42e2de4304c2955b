"""The parts of the chart that come from code: CRDs, roles, admission policies, catalogue, policy, schema of the values.

python -m hack.gen.chart            writes them into charts/inquest
python -m hack.gen.chart --check    exits 1 with a diff where one is out of date

What Helm fills in stands in the rendered objects as a word of `FILLED_IN` first, so that YAML is written by a library
and only then becomes a template.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from hack.gen.files import ROOT, reconcile
from inquest.api.admission import render, render_mutating
from inquest.api.generate import crds
from inquest.api.meta import DURATION_PATTERN
from inquest.api.rbac import (
    INVESTIGATOR,
    PEOPLE,
    Manifest,
    Rule,
    of_namespaces,
    of_the_cluster,
    people_role,
    render_rbac,
)
from inquest.settings import Settings

CHART: Final = ROOT / "charts" / "inquest"
FOLDER: Final = CHART / "templates" / "generated"
NOTE: Final = "{{- /* Written by `make chart`; change the code instead. */ -}}\n"
HAND_WRITTEN_SCHEMA: Final = Path(__file__).with_name("chart_values.yaml")
PLACEHOLDER: Final = "localhost/inquest/kubectl@sha256:" + "0" * 64

NAMESPACE, EXECUTION, ACCOUNT, LABELS = "__NAMESPACE__", "__EXECUTION__", "__ACCOUNT__", "__LABELS__"
FILLED_IN: Final[Mapping[str, str]] = {
    NAMESPACE: "{{ .Release.Namespace }}",
    EXECUTION: "{{ .Values.execution.namespace }}",
    ACCOUNT: '{{ include "inquest.serviceAccountName" . }}',
    f"{LABELS}: null": '{{- include "inquest.labels" . | nindent 4 }}',
    PLACEHOLDER: '{{ include "inquest.catalogueImage" . }}',
}

Json = dict[str, Any]

OWN_GROUPS: Final = ("kubernetes", "server", "crash", "audit")
"""Groups of settings that the chart sets itself, or that no operator in a pod reads."""
OWN_SETTINGS: Final = {
    "Settings": ("replica",),
    "PolicySettings": ("url", "file", "opa_binary", "strict"),
    "ExecutionSettings": ("namespace",),
    "DataStorageSettings": ("database", "server"),
    "IntakeSettings": ("host", "port", "tls_certificate", "tls_key"),
    "HeraldSettings": ("webhooks",),
}
"""Settings that the chart sets itself, or that may hold a password: a ConfigMap is no place for one."""


def main(arguments: list[str] | None = None) -> int:
    """0 where every file is as the code says, or was written."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    wanted = files()
    strangers = [path for path in FOLDER.glob("*") if path not in wanted]
    return reconcile(wanted, check=check, strangers=strangers)


def files() -> dict[Path, str]:
    """Every generated file of the chart with its text."""
    return {
        **{FOLDER / f"crd-{name}": _crd(found) for name, found in crds().items()},
        FOLDER / "rbac.yaml": _guarded(".Values.rbac.create", _roles()),
        FOLDER / "people.yaml": _guarded(".Values.rbac.people", map(people_role, PEOPLE)),
        FOLDER / "admission.yaml": _guarded(".Values.admissionPolicies.enabled", render(NAMESPACE, ACCOUNT, EXECUTION)),
        FOLDER / "signature.yaml": _guarded('include "inquest.signs" .', render_mutating(NAMESPACE, ACCOUNT)),
        FOLDER / "catalogue.yaml": _guarded(".Values.catalogue.enabled", _catalogue()),
        CHART / "files" / "approval.rego": (ROOT / "policies" / "approval.rego").read_text(encoding="utf-8"),
        CHART / "values.schema.json": json.dumps(values_schema(), indent=1, ensure_ascii=False) + "\n",
    }


# --- objects as templates -------------------------------------------------------------------------------------------


def template(objects: Iterable[Mapping[str, Any]]) -> str:
    """The objects as text in which Helm fills in names, and the labels of a release."""
    text = "---\n".join(_document(found) for found in objects)
    if "{{" in text:
        raise ValueError("an object holds {{, which Helm would read as its own")
    for word, filled in FILLED_IN.items():
        text = text.replace(f"    {word}", f"    {filled}") if word.startswith(LABELS) else text.replace(word, filled)
    return text


def _document(found: Mapping[str, Any]) -> str:
    metadata = dict(found["metadata"])
    labels = {LABELS: None, **metadata.pop("labels", {})}
    if metadata.get("namespace") == NAMESPACE:
        del metadata["namespace"]  # Helm puts an object into the release's namespace by itself
    whole = {**found, "metadata": {"name": metadata.pop("name"), **metadata, "labels": labels}}
    return yaml.safe_dump(whole, sort_keys=False, width=120, allow_unicode=True)


def _guarded(condition: str, objects: Iterable[Mapping[str, Any]]) -> str:
    return f"{NOTE}{{{{- if {condition} }}}}\n{template(objects)}{{{{- end }}}}\n"


def _crd(found: Manifest) -> str:
    """A template, so that an upgrade reaches it; kept at an uninstall, which would take every object with it."""
    keep = "  annotations:\n    helm.sh/resource-policy: keep\n"
    text = template([found]).replace(
        "\nspec:\n", f"\n  {{{{- if .Values.crds.keep }}}}\n{keep}  {{{{- end }}}}\nspec:\n", 1
    )
    return f"{NOTE}{{{{- if .Values.crds.enabled }}}}\n{text}{{{{- end }}}}\n"


def _roles() -> Iterator[Manifest]:
    """The operator's; the investigator's are in two halves, of which one can be bound in single namespaces."""
    people = {role.name for role in PEOPLE}
    for found in render_rbac(NAMESPACE, EXECUTION, ACCOUNT):
        if found["metadata"]["name"] not in people | {"inquest-investigator"}:
            yield found
    yield _cluster_role("inquest-investigator", of_namespaces(INVESTIGATOR))
    yield _cluster_role("inquest-investigator-cluster", of_the_cluster(INVESTIGATOR))


def _cluster_role(name: str, rules: Iterable[Rule]) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [rule.manifest() for rule in rules],
    }


def _catalogue() -> Iterator[Manifest]:
    for path in sorted((ROOT / "catalogue").glob("*.yaml")):
        for found in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            yield _moved(found)


def _moved(found: Manifest) -> Manifest:
    """Where the file names the execution namespace, the one of the values."""
    if "namespace" in found["metadata"]:
        found["metadata"]["namespace"] = EXECUTION
    for subject in found.get("subjects", ()):
        subject["namespace"] = EXECUTION
    return found


# --- the schema of the values ---------------------------------------------------------------------------------------


def values_schema() -> Json:
    """The hand-written schema of the chart's own values, with that of the product's settings under `settings`."""
    schema: Json = yaml.safe_load(HAND_WRITTEN_SCHEMA.read_text(encoding="utf-8"))
    schema["properties"]["settings"] = settings_schema()
    return schema


def settings_schema() -> Json:
    """What may stand under `settings`: every setting of the product but those that the chart sets, and no secret."""
    whole = Settings.model_json_schema()
    groups = {name: found for name, found in whole["properties"].items() if name not in OWN_GROUPS}
    return _plain("Settings", {**whole, "properties": groups}, whole["$defs"])


def _plain(name: str, schema: Json, defs: Mapping[str, Json]) -> Json:
    """A group with its members in place of references; secrets and what the chart sets itself are left out."""
    members = {
        key: _member(found, defs)
        for key, found in schema["properties"].items()
        if not found.get("writeOnly") and key not in OWN_SETTINGS.get(name, ())
    }
    required = [key for key in schema.get("required", ()) if key in members]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": members,
        **({"required": required} if required else {}),
    }


def _member(found: Json, defs: Mapping[str, Json]) -> Json:
    """One setting: durations as the product reads them, no defaults, for those are the product's own."""
    if "$ref" in found:
        name = str(found["$ref"]).rsplit("/", 1)[-1]
        return _plain(name, defs[name], defs) if "properties" in defs[name] else _member(defs[name], defs)
    if found.get("format") == "duration":
        return {"type": "string", "pattern": DURATION_PATTERN, **_described(found)}
    kept = {key: value for key, value in found.items() if key not in ("default", "title", "format")}
    for key in ("anyOf", "oneOf"):
        if key in kept:
            kept[key] = [_member(one, defs) for one in kept[key]]
    if "items" in kept:
        kept["items"] = _member(kept["items"], defs)
    return kept


def _described(found: Json) -> Json:
    return {"description": found["description"]} if "description" in found else {}


if __name__ == "__main__":
    sys.exit(main())
