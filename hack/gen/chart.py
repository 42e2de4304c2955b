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

from hack.gen import chart_readme
from hack.gen.files import ROOT, reconcile
from inquest.api.base import DURATION_PATTERN, GROUP
from inquest.api.installation import WATCHING
from inquest.api.manifests.admission import render_mutating, render_policies
from inquest.api.manifests.crd import render_crds
from inquest.api.manifests.docstrings import described_schema
from inquest.api.manifests.rbac import (
    CLUSTER_SCOPED,
    PEOPLE,
    Manifest,
    investigated_in,
    people_role,
    render_confined,
    render_datastorage,
    render_rbac,
    watched_in,
)
from inquest.settings.settings import Settings

CHART: Final = ROOT / "charts" / "inquest"
FOLDER: Final = CHART / "templates" / "generated"
NOTE: Final = "{{- /* Written by `make chart`; change the code instead. */ -}}\n"
HAND_WRITTEN_SCHEMA: Final = Path(__file__).with_name("chart_values.yaml")
PLACEHOLDER: Final = "localhost/inquest/kubectl@sha256:" + "0" * 64

NAMESPACE, EXECUTION, ACCOUNT, LABELS = "__NAMESPACE__", "__EXECUTION__", "__ACCOUNT__", "__LABELS__"
OPERATOR_NAMESPACE, PLACE = "__OPERATOR_NAMESPACE__", "__PLACE__"
TYPE_NOTES, WORKFLOW_NOTES = "__TYPE_NOTES__", "__WORKFLOW_NOTES__"
FILLED_IN: Final[Mapping[str, str]] = {
    NAMESPACE: "{{ $.Release.Namespace }}",
    OPERATOR_NAMESPACE: '{{ include "inquest.operatorNamespace" $ }}',
    EXECUTION: "{{ $.Values.execution.namespace }}",
    ACCOUNT: '{{ include "inquest.serviceAccountName" $ }}',
    PLACE: "{{ . }}",
    f"{LABELS}: null": '{{- include "inquest.labels" $ | nindent 4 }}',
    PLACEHOLDER: '{{ include "inquest.catalogueImage" $ }}',
    f"  {TYPE_NOTES}: null": "  {{- $typeNotes | nindent 2 }}",
    f"  {WORKFLOW_NOTES}: null": "  {{- $workflowNotes | nindent 2 }}",
}
"""`$`, since some of them stand in a loop over namespaces, in which the dot is `PLACE`."""

Json = dict[str, Any]

CATALOGUE_NOTES: Final = """\
{{- $typeNotes := include "inquest.catalogueNotes" (dict "root" . "weight" 0) }}
{{- $workflowNotes := include "inquest.catalogueNotes" (dict "root" . "weight" 1) }}
"""
RUNS: Final = ".Values.operator.enabled"
NAMESPACED: Final = ".Values.rbac.namespaced"

OWN_GROUPS: Final = ("kubernetes", "server", "evidence")
"""Groups of settings that the chart sets itself, or that no operator in a pod reads."""
OWN_SETTINGS: Final = {
    "Settings": ("replica",),
    "PolicySettings": ("url", "file", "opa_binary", "strict"),
    "ExecutionSettings": ("namespace",),
    "DataStorageSettings": ("database", "server"),
    "IntakeSettings": ("host", "port", "tls_certificate", "tls_key"),
    "NotificationSettings": ("webhooks",),
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
        **{FOLDER / f"crd-{name}": _crd(found) for name, found in render_crds().items()},
        FOLDER / "rbac.yaml": f"{NOTE}{_roles()}",
        FOLDER / "datastorage.yaml": _guarded(f"and {RUNS} .Values.datastorage.deployment.enabled", _datastorage()),
        FOLDER / "people.yaml": _guarded(".Values.rbac.people", map(people_role, PEOPLE)),
        FOLDER / "admission.yaml": _guarded(
            ".Values.admissionPolicies.enabled", render_policies(OPERATOR_NAMESPACE, ACCOUNT, EXECUTION)
        ),
        FOLDER / "signature.yaml": _guarded('include "inquest.signs" .', render_mutating(OPERATOR_NAMESPACE, ACCOUNT)),
        FOLDER / "catalogue.yaml": f"{NOTE}{_catalogue()}",
        CHART / "files" / "approval.rego": (ROOT / "policies" / "approval.rego").read_text(encoding="utf-8"),
        CHART / "values.schema.json": json.dumps(values_schema(), indent=1, ensure_ascii=False) + "\n",
        CHART / "README.md": chart_readme.page(
            (CHART / "Chart.yaml").read_text(encoding="utf-8"), (CHART / "values.yaml").read_text(encoding="utf-8")
        ),
        CHART / "files" / "keys.json": json.dumps(known_keys(), separators=(",", ":")) + "\n",
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
    return NOTE + _if(condition, template(objects))


def _if(condition: str, text: str, otherwise: str = "") -> str:
    other = f"{{{{- else }}}}\n{otherwise}" if otherwise else ""
    return f"{{{{- if {condition} }}}}\n{text}{other}{{{{- end }}}}\n"


def _each(places: str, objects: Iterable[Mapping[str, Any]]) -> str:
    """The objects once for each of these namespaces, as documents that follow others."""
    return f"{{{{- range {places} }}}}\n---\n{template(objects)}{{{{- end }}}}\n"


def _crd(found: Manifest) -> str:
    """A template, so that an upgrade reaches it; kept at an uninstall, which would take every object with it."""
    keep = "  annotations:\n    helm.sh/resource-policy: keep\n"
    text = template([found]).replace(
        "\nspec:\n", f"\n  {{{{- if .Values.crds.keep }}}}\n{keep}  {{{{- end }}}}\nspec:\n", 1
    )
    return f"{NOTE}{{{{- if .Values.crds.enabled }}}}\n{text}{{{{- end }}}}\n"


def _roles() -> str:
    """The operator's, in the whole cluster or in single namespaces."""
    people = {role.name for role in PEOPLE}
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    wide = [one for one in render_rbac(NAMESPACE, EXECUTION, ACCOUNT) if one["metadata"]["name"] not in people]
    own = [one for one in render_confined((), NAMESPACE, EXECUTION, ACCOUNT) if one["metadata"]["name"] != WATCHING]
    confined = template(own)
    confined += _each(f"append {NAMESPACED} .Release.Namespace | uniq", watched_in(PLACE, account))
    confined += _each(NAMESPACED, investigated_in(PLACE, account))
    return _if(f"and {RUNS} .Values.rbac.create", _if(NAMESPACED, confined, template(wide)))


def _datastorage() -> list[Manifest]:
    """Of a DataStorage that is served by itself; what calls it is the operator's account."""
    return render_datastorage(NAMESPACE, client=ACCOUNT)


def _catalogue() -> str:
    """Workflows, accounts and their roles; where single namespaces are looked after, the roles hold in those alone.

    What acts on kinds of no namespace is left out there: no Role could give it the right.
    """
    found = list(_whole_catalogue())
    far = {one["metadata"]["name"].removeprefix("inquest-workflow-") for one in found if _is_beyond_roles(one)}
    beyond = [one for one in found if _account_of(one) in far]
    wide = [one for one in found if one["kind"].startswith("ClusterRole") and one not in beyond]
    others = [one for one in found if one not in wide and one not in beyond]
    roles = _if(NAMESPACED, _each(NAMESPACED, map(_in_place, wide)), f"---\n{template(map(_noted, [*wide, *beyond]))}")
    ours = template(map(_noted, others))
    return _if(f"and {RUNS} .Values.catalogue.enabled", f"{CATALOGUE_NOTES}{ours}{roles}")


def _noted(found: Manifest) -> Manifest:
    """An object of our own kinds has a place for what lets Helm bring it together with its kind."""
    if found["apiVersion"].partition("/")[0] != GROUP:
        return found
    notes = TYPE_NOTES if found["kind"] == "ActionType" else WORKFLOW_NOTES
    return {**found, "metadata": {**found["metadata"], notes: None}}


def _is_beyond_roles(found: Manifest) -> bool:
    rules = found.get("rules", ())
    return any(
        (group, name) in CLUSTER_SCOPED for one in rules for group in one["apiGroups"] for name in one["resources"]
    )


def _account_of(found: Manifest) -> str:
    """The account of a workflow, of a role, or the account itself; empty for anything else."""
    if found["kind"] == "RemediationWorkflow":
        return str(found["spec"]["execution"]["serviceAccountName"])
    name = str(found["metadata"]["name"])
    return name.removeprefix("inquest-workflow-") if found["kind"] != "ActionType" else ""


def _in_place(wide: Manifest) -> Manifest:
    """A role of the whole cluster, or its binding, as one of a namespace."""
    found = {**wide, "kind": wide["kind"].removeprefix("Cluster"), "metadata": {**wide["metadata"], "namespace": PLACE}}
    if "roleRef" in found:
        found["roleRef"] = {**found["roleRef"], "kind": "Role"}
    return found


def _whole_catalogue() -> Iterator[Manifest]:
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
    _open(schema, schema["$defs"])
    return schema


def known_keys() -> Json:
    """`known`: every key that the values may have, as a tree; `places`: by name, where it stands.

    Helm looks at the schema first and says of a slip only that it is one. So the schema lets unknown keys pass where
    this tree knows all of them, and a template refuses them with the nearest right one.
    """
    whole: Json = yaml.safe_load(HAND_WRITTEN_SCHEMA.read_text(encoding="utf-8"))
    whole["properties"]["settings"] = settings_schema()
    tree = _keys(whole, whole["$defs"])
    places: dict[str, str] = {}
    for path in _paths(tree):
        places.setdefault(path.rsplit(".", 1)[-1], path)
    return {"known": tree, "places": places}


def _keys(schema: Json, defs: Mapping[str, Json]) -> Json:
    """Empty where any key is fine, or none."""
    found = _resolved(schema, defs)
    closed = found.get("additionalProperties") is False
    return {key: _keys(member, defs) for key, member in found.get("properties", {}).items()} if closed else {}


def _open(schema: Json, defs: Mapping[str, Json]) -> None:
    """Take the bar from every object that `known_keys` knows; those in lists keep it."""
    found = _resolved(schema, defs)
    members = found.get("properties", {})
    if members and found.get("additionalProperties") is False:
        del found["additionalProperties"]
    for member in members.values():
        _open(member, defs)


def _resolved(schema: Json, defs: Mapping[str, Json]) -> Json:
    return defs[str(schema["$ref"]).rsplit("/", 1)[-1]] if "$ref" in schema else schema


def _paths(tree: Json, before: str = "") -> Iterator[str]:
    for key, below in tree.items():
        yield f"{before}{key}"
        yield from _paths(below, f"{before}{key}.")


def settings_schema() -> Json:
    """What may stand under `settings`: every setting of the product but those that the chart sets, and no secret."""
    whole = described_schema(Settings)
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
