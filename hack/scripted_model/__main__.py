"""Serve a script until interrupted."""

from __future__ import annotations

import argparse
import socket
import sys

import uvicorn

from hack.scripted_model.script import ScriptError, load
from hack.scripted_model.server import Play, application


def main() -> int:
    """Print the base URL, then serve."""
    parser = argparse.ArgumentParser(prog="python -m hack.scripted_model", description=__doc__)
    parser.add_argument("--script", required=True, help="YAML file; see hack/scripted_model/script.py")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    options = parser.parse_args()
    try:
        play = Play(load(options.script))
    except (OSError, ScriptError) as error:
        print(error, file=sys.stderr)
        return 2
    with socket.create_server((options.host, options.port)) as listening:
        host, port = listening.getsockname()[:2]
        print(f"scripted/{play.script.model}: a script, not a model, at http://{host}:{port}/v1", flush=True)
        uvicorn.Server(uvicorn.Config(application(play), log_level="warning")).run([listening])
    return 0


if __name__ == "__main__":
    sys.exit(main())
