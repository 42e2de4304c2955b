"""What is kept of a case where the operator runs, journal and database, and how it is reached from elsewhere."""

from __future__ import annotations

from pathlib import Path

from inquest.settings import Settings


def settings_of(file: Path | None, operator_namespace: str) -> Settings:
    """The settings that say where the records are; a namespace that is given beats theirs."""
    chosen = Settings.load(file)
    if not operator_namespace:
        return chosen
    kubernetes = chosen.kubernetes.model_copy(update={"namespace": operator_namespace})
    return chosen.model_copy(update={"kubernetes": kubernetes})


def in_pod(words: str, namespace: str) -> str:
    """The command line that does the same in the operator's pod, as the chart has it."""
    program = "/opt/inquest/bin/python -m inquest.cli.main"
    pod = f"kubectl exec -n {namespace} deploy/inquest -c operator"
    return f"{pod} -- {program} {words} --settings /etc/inquest/settings.yaml"


__all__ = ["in_pod", "settings_of"]
