"""Whether requests are traced, and by what: OpenTelemetry, when a collector is named and the extra is installed.

`TOPICS_OTEL_ENDPOINT` turns tracing on and goes before the standard variables `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` and
`OTEL_EXPORTER_OTLP_ENDPOINT`, which do so too. What we were told in our own words we do or refuse to start; what a
platform tells all its processes must not keep this one from starting, so without the extra it is a warning.

Nothing of OpenTelemetry is imported here, and nothing at all happens to a request while tracing is off.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from os import environ
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from topics.errors import InvalidSetting
from topics.server.logs import fields
from topics.settings import Settings

if TYPE_CHECKING:
    from topics.server.spans import Spans

ENDPOINT_VARIABLE = "TOPICS_OTEL_ENDPOINT"
STANDARD_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
STANDARD_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
INSTALL = 'pip install "topics[otel]"'

log = logging.getLogger(__name__)


def spans_for(settings: Settings, variables: Mapping[str, str] = environ) -> Spans | None:
    """What makes spans, not started yet; None when tracing is off. Raises `InvalidSetting`."""
    if settings.otel_endpoint is not None:
        _check_endpoint(settings.otel_endpoint)
    standard = next((name for name in STANDARD_ENDPOINTS if variables.get(name)), None)
    source = ENDPOINT_VARIABLE if settings.otel_endpoint is not None else standard
    if source is None or _is_disabled(variables):
        return None
    try:
        # The extra may be missing, and what is off shall not cost the time to load it.
        from topics.server.spans import Spans
    except ImportError as error:
        missing = f"{source} asks for traces, and OpenTelemetry cannot be loaded ({error}): {INSTALL}"
        if source is ENDPOINT_VARIABLE:
            raise InvalidSetting(missing, settings=[source]) from error
        log.warning("no traces: %s", missing)
        return None
    if source is not ENDPOINT_VARIABLE:
        _warn_of_protocol(variables)
    try:
        return Spans(settings)
    except ValueError as error:
        raise unusable(error) from error


def unusable(error: ValueError) -> InvalidSetting:
    """The SDK reads its own variables, and does not always say which one it stumbled over."""
    message = f"a variable of OpenTelemetry (OTEL_*) cannot be used: {error}; expected a value that its SDK takes"
    return InvalidSetting(message, settings=[])


def _check_endpoint(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if usable and "@" in parts.netloc:
        # Not quoted: it has a password in it.
        raise InvalidSetting(
            f"{ENDPOINT_VARIABLE} has credentials in it: expected an address without, and a header in "
            "OTEL_EXPORTER_OTLP_HEADERS, for example authorization=Bearer%20KEY",
            settings=[ENDPOINT_VARIABLE],
        )
    if not usable or parts.query or parts.fragment:
        raise InvalidSetting(
            f"{ENDPOINT_VARIABLE}={endpoint}: expected the address of a collector that takes OTLP over HTTP, such as "
            "http://localhost:4318; spans go to /v1/traces below it",
            settings=[ENDPOINT_VARIABLE],
        )


def _is_disabled(variables: Mapping[str, str]) -> bool:
    """The standard ways to switch off whatever else is configured."""
    disabled = variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return disabled or variables.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"


def _warn_of_protocol(variables: Mapping[str, str]) -> None:
    asked = next((variables[name] for name in STANDARD_PROTOCOLS if variables.get(name)), PROTOCOL)
    if asked != PROTOCOL:
        log.warning("traces go out as %s all the same", PROTOCOL, extra=fields(asked=asked))
