"""The scripted endpoint itself: steps are chosen by what was asked, values are copied out of the conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hack.scripted_model.script import ScriptError, parse
from hack.scripted_model.server import serve
from tests.support.tables import each_row

ASKED = [{"role": "system", "content": "- kind: Pod"}, {"role": "user", "content": "why?"}]
TOOL = {"type": "function", "function": {"name": "kubectl_get", "parameters": {}}}


def post(url: str, **body: Any) -> httpx2.Response:
    with httpx2.Client(trust_env=False) as client:
        return client.post(f"{url}/chat/completions", json={"model": "m", "messages": ASKED} | body)


def said(response: httpx2.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


def test_every_answer_says_that_it_is_a_script() -> None:
    with serve(parse("{model: t, steps: [{reply: {text: x}}]}")) as server:
        response = post(server.base_url)

    assert "not from a model" in response.headers["x-scripted-model"]
    assert response.json()["model"] == "scripted/t"


@each_row(
    ("when", "fits"),
    [
        ("{turn: 1}", True),
        ("{turn: 2}", False),
        ("{offers: [kubectl_get]}", True),
        ("{offers: [submit_result]}", False),
        ("{lacks: [kubectl_get]}", False),
        ("{forced: false}", True),
        ("{forced: true}", False),
        ("{contains: 'kind: P.d'}", True),
        ("{contains: nothing}", False),
    ],
)
def test_a_step_answers_only_when_all_of_its_conditions_hold(when: str, fits: bool) -> None:
    script = parse(f"steps: [{{when: {when}, reply: {{text: it}}}}, {{reply: {{text: other}}}}]")
    with serve(script) as server:
        response = post(server.base_url, tools=[TOOL])

    assert said(response) == ("it" if fits else "other")


def test_values_are_copied_out_of_the_results_of_a_tool() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "kubectl_get", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "a", "content": "E4 memory 32Mi"}
    messages = [*ASKED, {"role": "assistant", "content": None, "tool_calls": [call]}, result]
    script = """
        let:
          id: {from: kubectl_get, find: '(E\\d+)'}
          limit: {from: kubectl_get, find: 'memory (\\S+)'}
          none: {from: kubectl_describe, find: 'E\\d+'}
        steps:
          - reply:
              calls:
                - name: submit_result
                  arguments:
                    quotes: [{id: '{{ id }}', more: '{{ limit | double }}'}, {if: '{{ none }}', id: '{{ none }}'}]
        """
    with serve(parse(script)) as server:
        message = post(server.base_url, messages=messages).json()["choices"][0]["message"]

    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"quotes": [{"id": "E4", "more": "64Mi"}]}


def test_requests_are_kept_and_the_prefix_that_came_before_counts_as_cached() -> None:
    with serve(parse("steps: [{reply: {text: x}}]")) as server:
        post(server.base_url)
        usage = post(server.base_url, messages=[*ASKED, {"role": "user", "content": "more"}]).json()["usage"]
        kept = len(server.requests)

    assert kept == 2
    assert 0 < usage["prompt_tokens_details"]["cached_tokens"] < usage["prompt_tokens"]


def test_a_request_for_which_no_step_is_left_fails_loudly() -> None:
    with serve(parse("steps: [{times: 1, reply: {text: x}}]")) as server:
        statuses = [post(server.base_url).status_code for _ in range(2)]

    assert statuses == [200, 500]


@pytest.mark.parametrize("text", ["steps: [{reply: {txt: x}}]", "steps: {", "[]"], ids=["unknown-key", "yaml", "shape"])
def test_a_script_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ScriptError):
        parse(text)


def test_a_script_can_be_served_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("steps: [{reply: {text: from a file}}]")

    with serve(path) as server:
        assert said(post(server.base_url)) == "from a file"
