"""Where a server would listen: whether its two ports are to be had, and whether its certificate would be believed."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from topics.cli import checkup
from topics.cli.checkup import Finding, bad, good
from topics.cli.probe import Probe
from topics.clock import SystemClock
from topics.errors import TopicsError
from topics.limits import SECOND_MS
from topics.settings import Settings

TIMEOUT_S = 5.0
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What a client of HTTP/2, and so of gRPC, says first: the preface, and settings that set nothing."""
SETTINGS_FRAME = 4
WHENEVER = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: what is too old is seen, too."""
FRAME_HEAD_BYTES = 9


def ports(settings: Settings) -> Iterator[Finding]:
    """The port of HTTP, then that of gRPC and what it needs for TLS."""
    running = _running(settings)
    place = f"{settings.host} port {settings.port}"
    if running is not None:
        yield good("port", f"topics {running} runs on {place}")
    elif why := _taken(settings.host, settings.port):
        yield bad("port", f"{place}: {why}", "stop the other program, or choose another with --port or TOPICS_PORT")
    else:
        yield good("port", f"{place} is free")
    if settings.no_grpc:
        yield good("gRPC", "is switched off; heaps have HTTP")
    elif find_spec("grpc") is None:
        yield good("gRPC", "is not installed (`pip install 'topics[grpc]'`); heaps have HTTP")
    else:
        yield _grpc_port(settings, running is not None)
        yield from _tls(settings)


def _running(settings: Settings) -> str | None:
    """The version of the server on the port of HTTP; None when there is none of ours."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    with suppress(TopicsError):
        fields = Probe(f"http://{host}:{settings.port}", None).get("/v0/health").fields
        return str(fields["version"]) if "version" in fields else None
    return None


def _taken(host: str, port: int) -> str:
    """Why a port cannot be had; empty when it can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _grpc_port(settings: Settings, is_running: bool) -> Finding:
    place = f"{settings.host} port {settings.grpc_port}"
    advice = "choose another with --grpc-port or TOPICS_GRPC_PORT (0 is any that is free), or do without by --no-grpc"
    if settings.grpc_port and settings.grpc_port == settings.port:
        return bad("gRPC", f"{place} is that of HTTP", advice)
    why = _taken(settings.host, settings.grpc_port)
    if not why:
        return good("gRPC", f"{place} is free" if settings.grpc_port else "any port that is free")
    if is_running and _speaks_http2(settings):
        return good("gRPC", f"is served on {place}")
    return bad("gRPC", f"{place}: {why}", advice)


def _speaks_http2(settings: Settings) -> bool:
    """Whether what listens on the port of gRPC answers as such a server does."""
    try:
        with socket.create_connection((settings.host, settings.grpc_port), TIMEOUT_S) as plain:
            stream = plain if settings.grpc_tls_cert is None else _trusting().wrap_socket(plain)
            with stream:
                stream.sendall(GREETING)
                head = stream.recv(FRAME_HEAD_BYTES, socket.MSG_WAITALL if stream is plain else 0)
    except OSError:
        return False
    return len(head) == FRAME_HEAD_BYTES and head[3] == SETTINGS_FRAME


def _trusting() -> ssl.SSLContext:
    """For looking who is there, not for saying anything."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


# ---- certificates


def _tls(settings: Settings) -> Iterator[Finding]:
    certificate, key, clients = settings.grpc_tls_cert, settings.grpc_tls_key, settings.grpc_tls_client_ca
    if certificate is None and key is None and clients is None:
        return
    if certificate is None or key is None:
        found = "takes a certificate and its key, and one of them is missing"
        yield bad("gRPC TLS", found, "set both TOPICS_GRPC_TLS_CERT and TOPICS_GRPC_TLS_KEY, or none")
        return
    try:
        shown = _shown(certificate, key)
    except OSError as error:
        # An SSLError is one of these, too.
        found = f"{certificate} and {key}: {_why(error)}"
        yield bad("gRPC TLS", found, "name a certificate chain and its key, both PEM, that this user may read")
        return
    ends_ms = ssl.cert_time_to_seconds(shown["notAfter"]) * SECOND_MS
    yield checkup.certificate(SystemClock().now_ms(), ends_ms, certificate)
    if clients is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(clients)
        except OSError as error:
            yield bad("gRPC TLS", f"{clients}: {_why(error)}", "name certificates (PEM) that clients are signed by")


def _shown(certificate: str, key: str) -> dict[str, Any]:
    """The certificate as a client would see it, after a handshake in memory."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.load_verify_locations(certificate)
    # It is its own proof: whether clients trust who signed it is for them to know.
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(WHENEVER)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server)
    for side in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return client.getpeercert() or {}


def _why(error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.EACCES, errno.EISDIR, errno.EPERM):
        return error.strerror or str(error)
    return getattr(error, "reason", None) or str(error)
