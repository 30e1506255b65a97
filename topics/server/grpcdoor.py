"""Whether there is gRPC: it may be turned off, and it may not be installed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from topics.server.context import Context
from topics.server.logs import fields

if TYPE_CHECKING:
    from topics.server.grpc.listener import GrpcListener

log = logging.getLogger(__name__)


def grpc_listener(context: Context) -> GrpcListener | None:
    """The listener of gRPC, not started yet; None where there is none."""
    if context.settings.no_grpc:
        return None
    try:
        from topics.server.grpc.listener import GrpcListener
    except ImportError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in ("google", "grpc", "grpc_health"):
            raise
        log.info("no gRPC", extra=fields(missing=missing.name, install="pip install 'topics[grpc]'"))
        return None
    return GrpcListener(context)
