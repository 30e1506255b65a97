"""gRPC: the same engine behind another door. `listener.py` opens it, `calls.py` is what every call passes."""

from __future__ import annotations

from os import environ

# Its core writes lines of its own to stderr, among ours; what goes wrong comes as an exception as well.
environ.setdefault("GRPC_VERBOSITY", "NONE")
