from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from topics.errors import InvalidSetting
from topics.server.tracing import STANDARD_ENDPOINTS, spans_for
from topics.settings import Settings

HERE = "http://localhost:4318"


@pytest.fixture
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python finds things when OpenTelemetry is not installed."""
    monkeypatch.delitem(sys.modules, "topics.server.spans", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)


def test_it_is_off_unless_a_collector_is_named() -> None:
    assert spans_for(Settings(), {}) is None
    assert spans_for(Settings(otel_endpoint=HERE), {}) is not None


@pytest.mark.parametrize("variable", STANDARD_ENDPOINTS)
def test_the_standard_variables_turn_it_on(variable: str) -> None:
    assert spans_for(Settings(), {variable: HERE}) is not None
    assert spans_for(Settings(), {variable: ""}) is None


@pytest.mark.parametrize("switch", [{"OTEL_SDK_DISABLED": "True"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_the_standard_variables_turn_it_off(switch: dict[str, str]) -> None:
    assert spans_for(Settings(otel_endpoint=HERE), switch) is None


@pytest.mark.usefixtures("without_the_extra")
def test_without_the_extra_our_setting_refuses_to_start_and_says_what_to_install() -> None:
    with pytest.raises(InvalidSetting, match=r'TOPICS_OTEL_ENDPOINT .*pip install "topics\[otel\]"'):
        spans_for(Settings(otel_endpoint=HERE), {})


@pytest.mark.usefixtures("without_the_extra")
def test_without_the_extra_a_variable_of_the_platform_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert spans_for(Settings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": HERE}) is None
    assert "OTEL_EXPORTER_OTLP_ENDPOINT asks for traces" in caplog.text
    assert 'pip install "topics[otel]"' in caplog.text


@pytest.mark.parametrize(
    "endpoint", ["localhost:4318", "grpc://localhost:4317", "http://", "http://h:port", "http://[::1", "http://h?x=1"]
)
def test_what_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(InvalidSetting, match=r"TOPICS_OTEL_ENDPOINT=.*expected the address of a collector"):
        spans_for(Settings(otel_endpoint=endpoint), {})


def test_credentials_in_the_address_are_refused_and_not_shown() -> None:
    with pytest.raises(InvalidSetting, match="OTEL_EXPORTER_OTLP_HEADERS") as refused:
        spans_for(Settings(otel_endpoint="http://user:hunter2@collector:4318"), {})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("variable", ["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"])
def test_a_standard_variable_that_cannot_be_used_is_refused(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "-1")
    with pytest.raises(InvalidSetting, match=r"OTEL_.* cannot be used"):
        spans = spans_for(Settings(otel_endpoint=HERE), {})
        assert spans is not None
        spans.start()


def test_another_protocol_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        spans_for(Settings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": HERE, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert "http/protobuf" in caplog.text


def test_a_server_without_traces_loads_nothing_of_them() -> None:
    code = "import sys, topics.server.app; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
