"""Heaps over gRPC, when a program asks for it: what it takes is loaded then, and may not be there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from topics.client.caller import CallOptions
from topics.client.heaptransport import HeapTransport
from topics.client.outage import OnOutage
from topics.errors import InvalidRequest, NotInstalled

TLS_SCHEME: Final = "grpcs://"
_SCHEMES: Final = (TLS_SCHEME, "grpc://")
_EXPECTED: Final = "host:port, grpc://host:port or grpcs://host:port"


def heaps_over_grpc(
    endpoints: str | Sequence[str], key: str | None, options: CallOptions, ca: bytes | None, on_outage: OnOutage
) -> HeapTransport:
    """The verbs of heaps at one or more servers; `endpoints` are a list, or separated by commas."""
    given = endpoints.split(",") if isinstance(endpoints, str) else list(endpoints)
    addresses = [_address(each.strip()) for each in given]
    is_tls = ca is not None or any(each.strip().startswith(TLS_SCHEME) for each in given)
    try:
        import grpc

        from topics.client.grpc.endpoints import Endpoints
        from topics.client.grpc.heaps import GrpcHeaps
    except ImportError as missing:
        install = "pip install 'topics[grpc]'"
        message = f"heaps over gRPC need {missing.name}, which is not installed: {install}, or leave grpc out"
        raise NotInstalled(message, install=install) from None
    tls = grpc.ssl_channel_credentials(ca) if is_tls else None
    return GrpcHeaps(Endpoints(addresses, key, options, tls), on_outage)


def _address(endpoint: str) -> str:
    for scheme in _SCHEMES:
        endpoint = endpoint.removeprefix(scheme)
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal():
        raise InvalidRequest(
            f"{endpoint!r} is not where gRPC is: expected {_EXPECTED}", field="grpc", expected=_EXPECTED
        )
    return endpoint
