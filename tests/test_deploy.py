"""What an operator is given works here: metrics that exist, units that load, commands that run."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.rig import clean_environment
from tests.e2e.served import served
from tests.server.api import serving
from topics.settings import CLIENT_VARIABLES, TABLE

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
OPERATIONS = (ROOT / "docs" / "OPERATIONS.md").read_text()

DASHBOARD = json.loads((DEPLOY / "grafana" / "topics.json").read_text())
ALERTS = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
SCRAPE = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yml").read_text())

RULES: list[dict[str, Any]] = [rule for group in ALERTS["groups"] for rule in group["rules"]]
METRIC = re.compile(r"\btopics_\w+")
SELECTOR = re.compile(r"\b(topics_\w+)(?:\{([^}]*)\})?")
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")
FROM_PROMETHEUS = {"instance", "job", "le"}


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, set[str]]]:
    """Type and labels of every metric of a server that has one of everything."""

    async def scrape() -> str:
        async with serving(tmp_path_factory.mktemp("metrics")) as api:
            await api.put("/v0/topics/jobs", {"type": "queue"})
            await api.put("/v0/topics/parts", {"partitions": 2})
            await api.write("orders", 1)
            await api.put("/v0/topics/orders/archives/lake", {"upto_seq": 1})
            await api.put("/v0/routers/copies", {"source": "orders", "dest": "audit"})
            await api.get("/v0/topics/nowhere")
            for _ in range(40):  # Only some requests are measured.
                await api.get("/v0/health")
            return (await api.get("/v0/metrics")).raw.decode()

    found: dict[str, tuple[str, set[str]]] = {}
    text = asyncio.run(scrape())
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M):
        parts = HISTOGRAM_PARTS if kind == "histogram" else ("",)
        samples = [labels for part in parts for labels in re.findall(rf"^{name}{part}(?:{{(.*?)}})? ", text, re.M)]
        labels = {label for sample in samples for label in re.findall(r"(\w+)=", sample)}
        for part in parts:
            found[name + part] = ("counter" if part else kind, labels)
    return found


def expressions(node: Any) -> Iterator[str]:
    """Every query of a dashboard, those of its variables included."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name in ("expr", "definition") and isinstance(value, str):
                yield value
            yield from expressions(value)
    elif isinstance(node, list):
        for each in node:
            yield from expressions(each)


QUERIES = [*expressions(DASHBOARD), *(rule["expr"] for rule in RULES)]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_asks_for_metrics_that_exist(query: str, exposed: dict[str, tuple[str, set[str]]]) -> None:
    names = set(METRIC.findall(query))
    assert names <= exposed.keys(), names - exposed.keys()
    for name, selectors in SELECTOR.findall(query):
        labels = set(re.findall(r"(\w+)\s*=", selectors))
        assert labels <= exposed[name][1] | FROM_PROMETHEUS, f"{name} has no such label"
    for grouped in re.findall(r"\bby \(([^)]*)\)", query):
        known = set.union(FROM_PROMETHEUS, *(exposed[name][1] for name in names))
        assert {label.strip() for label in grouped.split(",")} <= known
    assert query.count("(") == query.count(")") and query.count("{") == query.count("}")


@pytest.mark.parametrize("query", QUERIES)
def test_a_rate_is_one_of_a_counter(query: str, exposed: dict[str, tuple[str, set[str]]]) -> None:
    for name in re.findall(r"(?:rate|increase)\((topics_\w+)", query):
        # A head only grows while a topic lives, and begins anew with it, as a counter does.
        assert exposed[name][0] == "counter" or name == "topics_topic_head_seq"


def test_the_dashboard_shows_what_matters(exposed: dict[str, tuple[str, set[str]]]) -> None:
    shown = {name for query in expressions(DASHBOARD) for name in METRIC.findall(query)}
    alerted = {name for rule in RULES for name in METRIC.findall(rule["expr"])}
    assert alerted - shown <= {"topics_wal_spare_failures_total"}, "an alert leads to a dashboard that shows it"
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    for panel in DASHBOARD["panels"]:
        assert panel["title"] and (panel["type"] == "row" or panel["description"])
        assert panel["type"] == "row" or panel["datasource"]["uid"] == "${datasource}", "any Prometheus will do"


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_alert_is_explained() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names)) and all(
        rule["labels"]["severity"] in ("critical", "warning") for rule in RULES
    )
    explained = re.findall(r"^### (Topics\w+)$", OPERATIONS, re.M)
    assert explained == names, "in the same order, each once"


def test_the_scrape_is_of_the_path_that_there_is() -> None:
    (job,) = SCRAPE["scrape_configs"]
    assert (job["job_name"], job["metrics_path"]) == ("topics", "/v0/metrics")
    assert 'up{job="topics"}' in RULES[0]["expr"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_the_units_are_understood(tmp_path: Path) -> None:
    for path in (DEPLOY / "systemd").iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace("/usr/local/bin/topics", "/bin/true"))
    units = sorted(str(path) for path in tmp_path.iterdir())
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_units_name_flags_and_commands_that_exist() -> None:
    text = "".join(path.read_text() for path in (DEPLOY / "systemd").iterdir())
    for line in re.findall(r"/usr/local/bin/topics ([^'\n]*)", text):
        command, *rest = line.split()
        flags = [each for each in rest if each.startswith("--")]
        said = subprocess.run(
            [sys.executable, "-m", "topics", command, "--help"], capture_output=True, text=True, env=clean_environment()
        )
        assert said.returncode == 0 and all(flag in said.stdout for flag in flags)


def test_the_commands_of_the_handbook_run(tmp_path: Path) -> None:
    blocks = re.findall(r"^<!-- run -->\n```sh\n(.*?)^```$", OPERATIONS, re.M | re.S)
    assert len(blocks) == OPERATIONS.count("<!-- run -->") >= 4
    (tmp_path / "topics").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m topics "$@"\n')
    (tmp_path / "topics").chmod(0o755)
    with served(tmp_path / "data") as server:
        variables = clean_environment() | {"TOPICS_URL": server.url}
        variables["PATH"] = f"{tmp_path}:{variables['PATH']}"
        for block in blocks:
            done = subprocess.run(
                ["sh", "-ec", block], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120
            )
            assert (done.returncode, done.stderr) == (0, ""), block
    assert (tmp_path / "restored" / "wal").is_dir()


def test_settings_that_the_handbook_names_exist() -> None:
    known = {row.variable for row in TABLE} | set(CLIENT_VARIABLES)
    named = set(re.findall(r"\bTOPICS_[A-Z_]+", OPERATIONS))
    units = "".join(path.read_text() for path in (DEPLOY / "systemd").iterdir())
    assert named | set(re.findall(r"\bTOPICS_[A-Z_]+", units)) <= known
