"""The second gate: what all may read who may read an object shows nothing that looks like a token."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from inquest.core.redaction.mask import MARK
from inquest.core.redaction.redacted import Redacted
from inquest.core.redaction.redactor import CleanTexts, Redactor
from tests.support.tables import each_row

SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
LEAST = {20: 0.8, 24: 0.85, 32: 0.93, 40: 0.95}
"""Length of a token, and how many of five hundred are found."""
NO_TOKENS = (
    "0123456789abcdef0123456789abcdef",
    "4f1c8b1e-6a55-4f3c-9a3e-6f2a1b7c9d10",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg1SpIdNs6c5H0NE8XYXysP",
    "NginxHighHttp4xxErrorRate",
    "ValidatingAdmissionPolicyBinding",
    "checkout-7d9f8b6c5d-x2x9k",
    "/var/lib/kubelet/pods/Volumes1/Config2/App3",
    "com.example.billing.Log4j2ConfigurationFactory",
    "2026-11-22T10:00:04.123456Z",
    "Job/compact-2026-11-21",
    "4f1c8b1e-6a55-4f3c-9a3e-6f2a1b7c9d10/StatusUpdate/duplicates-10",
    "assumed-role/eks-workers-NodeInstanceRole/i-0f3c9a1be2d417c55",
    "KubeDeploymentReplicasMismatch",
    "AAAAC3NzaC1lZDI1NTE5AAAAIGq1x2y3z4A5b6C7d8E9f0",
)


@pytest.mark.parametrize(("length", "least"), LEAST.items())
def test_most_tokens_are_taken_out_of_what_is_published(length: int, least: float) -> None:
    random = Random(7)
    tokens = ["".join(random.choice(SIGNS) for _ in range(length)) for _ in range(500)]

    shown = Redactor().published([f"refused: {token} is not known" for token in tokens]).value

    assert sum(MARK in one for one in shown) >= least * len(tokens)


@each_row("text", NO_TOKENS)
def test_a_name_a_digest_and_a_path_are_published_as_they_are(text: str) -> None:
    assert Redactor().published(f"Deployment {text} is not ready").value == f"Deployment {text} is not ready"


def test_a_model_reads_what_is_too_little_to_be_sure() -> None:
    text = "request 8hT2kLq9ZxW4mNb7RvC1 failed"

    assert Redactor().strings(text).value == text
    assert Redactor().published(text).value == f"request {MARK} failed"


@pytest.mark.parametrize("before", [Redactor.text, Redactor.strings, Redactor.published])
def test_a_text_that_passed_once_loses_its_token_again(before: Callable[[Redactor, str], Redacted[str]]) -> None:
    redactor, text = Redactor(), "request 8hT2kLq9ZxW4mNb7RvC1 failed"
    before(redactor, text)

    assert redactor.published(text).value == f"request {MARK} failed"


@pytest.mark.parametrize("gate", [Redactor.text, Redactor.strings, Redactor.published])
def test_what_is_learned_later_is_masked_in_a_text_that_passed_before(
    gate: Callable[[Redactor, str], Redacted[str]],
) -> None:
    redactor, text = Redactor(), "the value is plainly-a-word"
    assert gate(redactor, text).value == text

    redactor.learn("plainly-a-word")

    assert gate(redactor, text).value == f"the value is {MARK}"


@pytest.mark.parametrize("most", [1, 3])
def test_a_memory_that_is_full_begins_anew(most: int) -> None:
    clean = CleanTexts(most)
    for number in range(10):
        clean.add(str(number))

    assert "9" in clean
    assert sum(str(number) in clean for number in range(10)) <= most
