"""Who carries requests to a target from outside the cluster: the controller of its Ingresses, and what it says.

Pure functions over objects as the API server returns them, and over what a snapshot read of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from inquest.core.cluster.objects import annotations_of, labels_of, name_of, namespace_of, spec_of
from inquest.core.cluster.relations import Step
from inquest.core.evidence.evidence import Json
from inquest.core.evidence.snapshot import LogTail, Snapshot

CARRIER: Final = "cluster carrier"
"""First words of the reads about what carries requests to the target."""
_CLASS: Final = "kubernetes.io/ingress.class"
_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"
_NAME: Final = "app.kubernetes.io/name"
_NO_NAMES: Final = frozenset({"", "k8s", "controller"})
"""Words of a controller's name that say nothing."""


def carrier_names(ingress_class: Json) -> tuple[str, ...]:
    """Values of `app.kubernetes.io/name` that pods of a class's controller may bear.

    From the controller's own name (`k8s.io/ingress-nginx`, `traefik.io/ingress-controller`) and the habits of charts; a
    name that nobody bears selects nothing.
    """
    domain, _, path = str(spec_of(ingress_class).get("controller") or "").partition("/")
    words = dict.fromkeys((*path.split("/"), domain.partition(".")[0]))
    known = [word for word in words if word not in _NO_NAMES]
    return tuple(dict.fromkeys(f"{word}{end}" for word in known for end in ("", "-controller", "-ingress")))


def class_of(ingress: Json, classes: Iterable[Json]) -> str:
    """The name of an Ingress's class, the default one where it names none; empty where there is neither."""
    named = spec_of(ingress).get("ingressClassName") or annotations_of(ingress).get(_CLASS)
    default = (name_of(each) for each in classes if annotations_of(each).get(_DEFAULT) == "true")
    return str(named or next(default, ""))


def settings_named(pod: Json) -> tuple[Step, ...]:
    """Namespace and name of the ConfigMaps that a controller is told of by `--configmap`."""
    own = namespace_of(pod)
    args = (str(word) for each in spec_of(pod).get("containers") or () for word in each.get("args") or ())
    values = (word.partition("=")[2] for word in args if word.startswith("--configmap="))
    parts = (value.rpartition("/") for value in values if value)
    return tuple((own if "$" in place or not place else place, name) for place, _, name in parts)


_REFUSED: Final = re.compile(r"\[emerg\] [^\n]{0,200}?\"([^\"\n]{3,80})\"")
"""A word of its configuration that nginx does not take."""


def complained_words(text: str) -> tuple[str, ...]:
    """Words for which a controller does not take up its configuration, in the order in which its log names them."""
    return tuple(dict.fromkeys(_REFUSED.findall(text)))


def holds_word(text: str, words: Collection[str]) -> bool:
    """Whether one of these stands in a text, not as a part of another word."""
    return any(re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", text) for word in words)


def is_carrier(pod: Json, ingress_class: Json) -> bool:
    """Whether a pod bears a name of the class's controller."""
    return labels_of(pod).get(_NAME) in carrier_names(ingress_class)


# --- what was read of it ----------------------------------------------------------------------------------------------


def carrier_logs(snapshot: Snapshot) -> tuple[LogTail, ...]:
    """What the controllers say that carry requests to the target."""
    return tuple(log for log in snapshot.logs if log.evidence in carrier_entries(snapshot) and not log.previous)


def carrier_entries(snapshot: Snapshot) -> frozenset[str]:
    """The evidence in which they, their pods, settings and warnings stand."""
    told = (each for each in snapshot.evidence if str(each.arguments.get("read", "")).startswith(CARRIER))
    return frozenset(each.id for each in told)
