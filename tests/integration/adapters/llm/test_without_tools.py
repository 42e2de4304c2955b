"""An endpoint that knows no tools is told from one that refuses a request."""

from __future__ import annotations

import pytest

from inquest.adapters.llm.errors import fault_class
from inquest.errors import ModelRefused
from tests.integration.adapters.llm.conftest import FakeClock, Start, both_ways, connected, redacted

REFUSALS = {
    "ollama": "{status: 400, message: 'registry.ollama.ai/library/gemma:2b does not support tools'}",
    "vllm": "{status: 400, message: '\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser'}",
    "llama.cpp": "{status: 500, message: 'tools param requires --jinja flag'}",
    "router": "{status: 404, message: 'No endpoints found that support tool use.'}",
    "groq": "{status: 400, message: '`tool calling` is not supported with this model'}",
    "unknown-field": "{status: 400, message: 'Unrecognized request argument supplied: tools'}",
    "strict-body": "{status: 422, body: {detail: [{type: extra_forbidden, loc: [body, tools], msg: Extra inputs}]}}",
    "late": "{status: 200, late: true, message: this model does not support tools}",
}


@both_ways
@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS.keys())
async def test_an_endpoint_that_refuses_tools_is_named_as_such(
    script: Start, clock: FakeClock, stream: bool, error: str
) -> None:
    serving = script(f"steps: [{{error: {error}}}]")

    async with connected(clock, serving, stream=stream) as model:
        with pytest.raises(ModelRefused) as raised:
            await model.ask(redacted())

    assert (fault_class(raised.value), len(serving.requests)) == ("ModelWithoutTools", 1)


async def test_a_schema_that_is_refused_is_no_missing_protocol(script: Start, clock: FakeClock) -> None:
    words = "Invalid schema for function 'kubectl_get': 'x' is no type of parameters in tools[0]"
    serving = script(f'steps: [{{error: {{status: 400, code: invalid_function_parameters, message: "{words}"}}}}]')

    async with connected(clock, serving) as model:
        with pytest.raises(ModelRefused, match="ModelRejected"):
            await model.ask(redacted())
