"""The CRDs: the same models give the same text, everything is bounded and explained, the files agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.gen import crds as command
from inquest.api.manifests.crd import crd, render_crds
from inquest.api.registry import BY_KIND, KINDS, KindEntry
from inquest.api.types import Outcome, Phase
from tests.support.tables import each_row

Schema = dict[str, Any]
EACH_KIND = each_row("entry", KINDS, ids=lambda entry: entry.kind)


def _schema(entry: KindEntry) -> Schema:
    found: Schema = crd(entry)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def _parts(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from _parts(part, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if word in schema:
            yield from _parts(schema[word], f"{path}[]")


def _own(entry: KindEntry) -> list[tuple[str, Schema]]:
    """Everything under spec and status."""
    parts = _schema(entry)["properties"]
    return [pair for part in ("spec", "status") for pair in _parts(parts[part], part)]


def test_the_same_models_give_the_same_text() -> None:
    assert command.files() == command.files()


def test_the_files_are_those_that_the_models_give() -> None:
    assert command.main(["--check"]) == 0


@EACH_KIND
def test_every_text_list_and_map_has_a_limit(entry: KindEntry) -> None:
    limits = {"string": {"maxLength", "enum", "format"}, "array": {"maxItems"}}
    for path, part in _own(entry):
        wanted = limits.get(part.get("type", ""), set())
        wanted |= {"maxProperties"} if "additionalProperties" in part else set()
        assert not wanted or wanted & set(part), f"{entry.kind} {path} has no limit"


@EACH_KIND
def test_every_field_says_what_it_means(entry: KindEntry) -> None:
    silent = [path for path, part in _own(entry) if not path.endswith("[]") and not part.get("description")]

    assert silent == []


@EACH_KIND
def test_nothing_in_a_status_appears_by_itself(entry: KindEntry) -> None:
    parts = _parts(_schema(entry)["properties"]["status"])

    assert [path for path, part in parts if "default" in part] == []


@EACH_KIND
def test_every_schema_node_has_a_type(entry: KindEntry) -> None:
    untyped = [path for path, part in _own(entry) if "type" not in part and "x-kubernetes-int-or-string" not in part]

    assert untyped == []


@EACH_KIND
def test_every_column_shows_a_field_that_exists(entry: KindEntry) -> None:
    there = {path.replace("[]", "") for path, _ in _own(entry)} | {"metadata.creationTimestamp"}
    for column in entry.columns:
        assert column.path.lstrip(".").replace("[0]", "").replace("[*]", "") in there, column


@EACH_KIND
def test_conditions_are_a_map_by_type(entry: KindEntry) -> None:
    conditions = _schema(entry)["properties"]["status"]["properties"]["conditions"]

    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == ("map", ["type"])


@EACH_KIND
def test_every_rule_names_its_field(entry: KindEntry) -> None:
    for path, part in _parts(_schema(entry)):
        for found in part.get("x-kubernetes-validations", ()):
            assert found["message"], path
            field = found.get("fieldPath", "").rpartition(".")[2]
            assert field in found["message"], found


def test_one_crd_for_each_kind() -> None:
    assert {
        found["spec"]["names"]["kind"]: found["spec"]["names"]["shortNames"] for found in render_crds().values()
    } == {
        "Signal": ["sig"],
        "Investigation": ["inv"],
        "RemediationApprovalRequest": ["rar"],
        "WorkflowExecution": ["wfe"],
        "ActionType": ["at"],
        "RemediationWorkflow": ["rwf"],
    }


def test_words_of_the_contract_are_enums() -> None:
    status = _schema(BY_KIND["Investigation"])["properties"]["status"]["properties"]

    assert status["phase"]["enum"] == [word.value for word in Phase]
    assert status["outcome"]["enum"] == [word.value for word in Outcome]
    assert len(Outcome) == 9


def test_required_and_default_are_as_the_tables_say() -> None:
    spec = _schema(BY_KIND["Signal"])["properties"]["spec"]

    assert spec["required"] == ["name", "severity", "source", "target"]
    assert spec["properties"]["mode"]["default"] == "Reactive"
    workflow = _schema(BY_KIND["RemediationWorkflow"])["properties"]["spec"]
    assert workflow["properties"]["execution"]["properties"]["timeout"]["default"] == "10m"
    assert workflow["properties"]["undo"]["properties"]["when"]["default"] == "Manual"
