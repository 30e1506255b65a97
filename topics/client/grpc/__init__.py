"""Heaps over gRPC: the same verbs as over HTTP, and messages on one stream that works both ways."""

from __future__ import annotations

from os import environ

# Its core writes lines of its own to stderr, among the program's; what goes wrong comes as an exception as well.
environ.setdefault("GRPC_VERBOSITY", "NONE")
