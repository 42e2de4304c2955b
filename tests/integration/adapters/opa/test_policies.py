"""The shipped Rego, through OPA's own test runner and the capabilities that it will be held to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from inquest.adapters.opa.policy import restrict_capabilities
from tests.support.tables import row

POLICIES = Path(__file__).parents[4] / "policies"
DEFAULT = POLICIES / "approval.rego"
EXAMPLES = sorted(path for path in (POLICIES / "examples").glob("*.rego") if not path.stem.endswith("_test"))


def opa(binary: str, *arguments: object) -> str:
    done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@row("C-RG-2")
def test_the_tests_of_the_default_policy_pass_and_reach_all_of_it(opa_binary: str) -> None:
    paths = (DEFAULT, POLICIES / "approval_test.rego")

    found = json.loads(opa(opa_binary, "test", "--coverage", "--format=json", *paths))

    assert found["coverage"] == 100
    assert "PASS" in opa(opa_binary, "test", *paths)


def test_the_tests_of_the_variants_pass(opa_binary: str) -> None:
    assert "PASS" in opa(opa_binary, "test", DEFAULT, POLICIES / "examples")


@pytest.mark.parametrize("path", [DEFAULT, *EXAMPLES], ids=lambda path: path.stem)
def test_shipped_rego_compiles_strictly_without_network_clock_and_chance(
    opa_binary: str, path: Path, tmp_path: Path
) -> None:
    capabilities = tmp_path / "capabilities.json"
    capabilities.write_text(json.dumps(restrict_capabilities(json.loads(opa(opa_binary, "capabilities", "--current")))))

    paths = dict.fromkeys((DEFAULT, path))

    opa(opa_binary, "check", "--strict", "--capabilities", capabilities, *paths)
    assert opa(opa_binary, "fmt", "-l", *paths) == ""
