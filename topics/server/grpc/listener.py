"""The gRPC server: bound with the HTTP one, on the same loop, stopped with it.

It listens on `TOPICS_HOST` at `TOPICS_GRPC_PORT`, in plain text or with TLS. Beside our two services it has
`grpc.health.v1`, which is not serving until the engine is recovered and when the server stops, and reflection, so that
tools find everything by asking. Idle clients may ping as often as they like: those of this contract do, every 30 s, and
would be cut off by the defaults.
"""

from __future__ import annotations

from typing import Any, Final

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

from topics.errors import InvalidSetting
from topics.limits import GRPC_CALLS_MAX, KIB, SECOND_MS
from topics.proto.messages import DISHEAP, FILES, HEAPS
from topics.server.context import Context
from topics.server.grpc.calls import Calls
from topics.server.grpc.disheap import Disheap
from topics.server.grpc.heaps import Heaps
from topics.server.grpc.stopping import Stopping
from topics.settings import Settings
from topics.storage.fs import RealFs

ENVELOPE_BYTES: Final = 64 * KIB
"""What a message may have beside the payloads that a body is allowed."""
KEEPALIVE_MS: Final = 30 * SECOND_MS
"""A client that vanished without a word is noticed after this and a little more, and what it had goes to others."""
STREAMS_PER_CONNECTION_MAX: Final = 1000


class GrpcListener:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._settings = context.settings
        self._stopping = Stopping()
        self._health = health.aio.HealthServicer()
        self._server: Any = None
        self.address = ""
        """`host:port` once it listens; with port 0, the port that the system chose."""

    async def start(self) -> None:
        """Listen. Raises `InvalidSetting` when the address or the certificates cannot be had."""
        self._server = server = grpc.aio.server(
            options=_options(self._settings), maximum_concurrent_rpcs=_calls_max(self._settings)
        )
        calls = Calls(self._context)
        server.add_generic_rpc_handlers(
            (
                calls.service(DISHEAP, Disheap(self._context, self._stopping).served()),
                calls.service(HEAPS, Heaps(self._context, self._stopping).served()),
            )
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        await self._say(health_pb2.HealthCheckResponse.NOT_SERVING)
        names = (DISHEAP, HEAPS, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server, _all_descriptors())
        self.address = self._bind(server)
        await server.start()

    def _bind(self, server: Any) -> str:
        settings = self._settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        wanted = f"{host}:{settings.grpc_port}"
        credentials = _credentials(settings)
        try:
            if credentials is None:
                port = server.add_insecure_port(wanted)
            else:
                port = server.add_secure_port(wanted, credentials)
        except RuntimeError:
            port = 0
        if not port:
            raise InvalidSetting(
                f"cannot listen on {settings.host} port {settings.grpc_port} for gRPC; expected an address of this "
                "machine and a port that nobody else has (--grpc-port, TOPICS_GRPC_PORT; 0 is any that is free), or "
                "--no-grpc to do without",
                settings=["TOPICS_HOST", "TOPICS_GRPC_PORT"],
            )
        return f"{host}:{port}"

    async def ready(self) -> None:
        """The engine is there: say so to who asks for health."""
        await self._say(health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, grace_s: float) -> None:
        """Take no more calls; streams are told to go, and what is under way has its time."""
        if self._server is None:
            return
        server, self._server = self._server, None
        await self._say(health_pb2.HealthCheckResponse.NOT_SERVING)
        self._stopping.stop()
        await server.stop(grace_s)

    async def _say(self, status: Any) -> None:
        for name in ("", DISHEAP, HEAPS):
            await self._health.set(name, status)


def _calls_max(settings: Settings) -> int | None:
    """Calls and streams under way at a time; more are refused before anything is read of them."""
    streams_max = settings.max_sse_connections
    return streams_max + GRPC_CALLS_MAX if streams_max else None


def _options(settings: Settings) -> list[tuple[str, int]]:
    return [
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_MS // 2),
        ("grpc.max_concurrent_streams", STREAMS_PER_CONNECTION_MAX),
        # It counts calls that have ended and are not cleared away yet, and so refuses clients that keep to the bound.
        ("grpc.http.overload_protection", 0),
        ("grpc.max_receive_message_length", settings.max_body_bytes + ENVELOPE_BYTES),
        ("grpc.max_send_message_length", -1),
        # Two servers on one port would each get some of the clients.
        ("grpc.so_reuseport", 0),
    ]


def _credentials(settings: Settings) -> Any:
    if settings.grpc_tls_cert is None and settings.grpc_tls_key is None and settings.grpc_tls_client_ca is None:
        return None
    if settings.grpc_tls_cert is None or settings.grpc_tls_key is None:
        raise InvalidSetting(
            "TLS of gRPC takes a certificate and its key: expected both TOPICS_GRPC_TLS_CERT and TOPICS_GRPC_TLS_KEY",
            settings=["TOPICS_GRPC_TLS_CERT", "TOPICS_GRPC_TLS_KEY"],
        )
    key = _file("TOPICS_GRPC_TLS_KEY", settings.grpc_tls_key)
    chain = _file("TOPICS_GRPC_TLS_CERT", settings.grpc_tls_cert)
    if settings.grpc_tls_client_ca is None:
        return grpc.ssl_server_credentials([(key, chain)])
    roots = _file("TOPICS_GRPC_TLS_CLIENT_CA", settings.grpc_tls_client_ca)
    return grpc.ssl_server_credentials([(key, chain)], roots, require_client_auth=True)


def _file(variable: str, path: str) -> bytes:
    try:
        file = RealFs().open(path, "read")
        try:
            return file.read_at(0, file.size())
        finally:
            file.close()
    except OSError as error:
        raise InvalidSetting(
            f"{variable}={path}: {error.strerror}; expected a file in PEM format that this user may read",
            settings=[variable],
        ) from error


def _all_descriptors() -> Any:
    """What reflection can tell: our files, and those of the services beside them."""
    pool = DescriptorPool()
    for file in FILES:
        pool.Add(file)
    for module in (health_pb2, reflection_pb2):
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        pool.Add(file)
    return pool
