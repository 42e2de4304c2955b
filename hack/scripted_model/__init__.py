"""An OpenAI endpoint that plays a script: for demos and tests, never a model, and it says so in every answer.

    with serve(load("hack/scripted_model/scripts/oom.yaml")) as server:
        OpenAIModel([Endpoint(server.base_url, "scripted")], …)

`script` says what a script may hold, `server` speaks the protocol. By hand:
`python -m hack.scripted_model --script hack/scripted_model/scripts/oom.yaml --port 8081`.
"""

from hack.scripted_model.script import Script, ScriptError, load, parse
from hack.scripted_model.server import Serving, Tls, serve

__all__ = ["Script", "ScriptError", "Serving", "Tls", "load", "parse", "serve"]
