"""What the API server lists as the rights of each account of the product, as text that can be kept and compared."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.chart.chart import NAMESPACE
from tests.e2e.chart.conftest import EXECUTION, Site

NEVER = {"secrets", "*"}
NEVER_BELOW = {"exec", "attach", "portforward", "proxy", "token", "ephemeralcontainers", "approval"}
NEVER_DONE = {"escalate", "bind", "impersonate", "approve", "*"}


def recorded(mode: str) -> str:
    """What was listed when a person last agreed to it."""
    return (Path(__file__).parent / "golden" / f"{mode}.txt").read_text()


def listed(site: Site) -> str:
    """`kubectl auth can-i --list` of every account where it lives, where it looks and elsewhere; sorted."""
    return "".join(_section(site, account, place) for account, place in _places(site))


def forbidden(told: str) -> list[str]:
    """The lines that no account of ours may have, whatever the recorded text says."""
    return [line for line in told.splitlines() if not line.startswith("==") and _is_forbidden(line.split(" | "))]


def _is_forbidden(columns: list[str]) -> bool:
    resource, _, below = columns[0].partition("/")
    verbs = set(columns[-1].strip("[]").split())
    return resource.split(".")[0] in NEVER or below.split(".")[0] in NEVER_BELOW or bool(verbs & NEVER_DONE)


def _places(site: Site) -> list[tuple[str, str]]:
    """Every account of the product with the namespaces to ask about: its homes, one that is investigated, another."""
    own = [(f"{NAMESPACE}:inquest", place) for place in (NAMESPACE, EXECUTION, "shop", "default")]
    accounts = json.loads(site.kubectl("get", "sa", "-n", EXECUTION, "-o", "json"))["items"]
    workers = sorted(each["metadata"]["name"] for each in accounts)
    return own + [(f"{EXECUTION}:{name}", "shop") for name in workers]


def _section(site: Site, account: str, place: str) -> str:
    told = site.kubectl("auth", "can-i", "--list", f"--as=system:serviceaccount:{account}", "-n", place, "--no-headers")
    return f"== {account} in {place}\n" + "".join(f"{line}\n" for line in sorted(set(map(_columns, told.splitlines()))))


def _columns(line: str) -> str:
    """Without the padding, which depends on the longest name, and with the verbs sorted, whose order is chance."""
    *parts, verbs = [part.strip() for part in line.replace("[", "  [").split("  ") if part.strip()]
    return " | ".join((*parts, f"[{' '.join(sorted(verbs.strip('[]').split()))}]"))
