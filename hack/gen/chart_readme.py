"""The page of the chart for who meets it in a registry: every value with its default and what its comment says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

INTRODUCTION: Final = """\
# inquest

{description}

```
helm install inquest charts/inquest -n inquest-system --create-namespace -f values.yaml --wait
helm test inquest -n inquest-system --logs
```

`image.repository` has to be given; everything else has a default that works. How to install, with the starter
catalogue, metrics, network policies and a policy of your own: `docs/how-to/install-with-helm.md` of the repository; for
one team, without rights in the whole cluster: `docs/how-to/install-for-one-team.md`. A key that the chart does not know
is refused with the nearest one that it knows.

Kubernetes {kubernetes}. Chart {version}, Inquest {product}.

## Values

Written by `make chart` from `values.yaml`.

| key | default | |
|---|---|---|
"""
LONGEST: Final = 80
"""Characters of a default that is shown; a longer one stands in values.yaml."""


@dataclass(frozen=True)
class Value:
    """One row: a dotted key, its default as YAML in one line, its comment."""

    key: str
    default: str
    meaning: str


def page(chart: str, values: str) -> str:
    """The page for these texts of Chart.yaml and values.yaml."""
    about = yaml.safe_load(chart)
    head = INTRODUCTION.format(
        description=about["description"],
        kubernetes=about["kubeVersion"].removesuffix("-0"),
        version=about["version"],
        product=about["appVersion"],
    )
    return head + "".join(f"| `{one.key}` | {one.default} | {one.meaning} |\n" for one in rows(values))


def rows(values: str) -> Iterator[Value]:
    """Every value that has no further ones below it, in order."""
    top = yaml.compose(values, Loader=yaml.SafeLoader)
    if not isinstance(top, yaml.MappingNode):
        raise TypeError("values.yaml holds no mapping")
    yield from _below(top, "", values.splitlines())


def _below(node: yaml.MappingNode, before: str, lines: list[str]) -> Iterator[Value]:
    for key, found in node.value:
        name, said = f"{before}{key.value}", _comment(lines, key.start_mark.line)
        if isinstance(found, yaml.MappingNode) and found.value and not found.flow_style:
            if said:
                yield Value(name, "", said)
            yield from _below(found, f"{name}.", lines)
        else:
            yield Value(name, _default(found), said)


def _default(node: yaml.Node) -> str:
    text = json.dumps(yaml.safe_load(yaml.serialize(node)))
    return f"`{text}`" if len(text) <= LONGEST else "in `values.yaml`"


def _comment(lines: list[str], at: int) -> str:
    """The block of comments right above a line; what is an example in it (three spaces) is left out."""
    first = at
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    told = (line.lstrip().removeprefix("#") for line in lines[first:at])
    return " ".join(line.strip() for line in told if not line.startswith("   ")).replace("|", "\\|")
