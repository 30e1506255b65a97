from __future__ import annotations

from tests.core.catalogrig import pipeline, report, table
from tests.engine.rig import Rig
from tests.server.probing import serving
from topics.core.pipelinecommands import PutPipeline, PutTable, ReportPipeline
from topics.limits import REPORT_LOST_MS


def running() -> Rig:
    rig = Rig()
    rig.configure("t42:orders")
    rig.driver.do(PutTable("t", table()))
    for name in ("idle", "t42:busy"):
        into = f"{name}-out"
        rig.driver.do(PutPipeline(name, pipeline("t42:orders", into=into)))
    said = report(lag_records=5, lag_ms=700, input_rows_total=9, output_rows_total=8, error_rows_total=1, restarts=2)
    rig.driver.do(ReportPipeline("t42:busy", said))
    return rig


def test_each_pipeline_is_told() -> None:
    rig = running()
    with serving(rig) as probe:
        lines = probe.lines()
        assert lines["topics_tables"] == "1"
        assert lines['topics_pipelines{condition="waiting"}'] == lines['topics_pipelines{condition="running"}'] == "1"
        labels = '{pipeline="t42:busy",kind="insert"}'
        expected = {"lag_records": "5", "lag_ms": "700", "input_rows_total": "9", "output_rows_total": "8", "up": "1"}
        expected |= {"error_rows_total": "1", "restarts_total": "2"}
        assert {name: lines[f"topics_pipeline_{name}{labels}"] for name in expected} == expected
        assert lines['topics_pipeline_up{pipeline="idle",kind="insert"}'] == "0"
        assert 'topics_pipeline_lag_ms{pipeline="idle",kind="insert"}' not in lines
        assert f"topics_pipeline_lag_versions{labels}" not in lines
        rig.clock.advance(REPORT_LOST_MS + 1)
        lines = probe.lines()
        assert (lines['topics_pipelines{condition="lost"}'], lines[f"topics_pipeline_up{labels}"]) == ("1", "0")


def test_a_key_sees_its_own_pipelines_only() -> None:
    with serving(running(), api_keys="all,few:read:t42:") as probe:
        lines = probe.lines("few")
    assert [name for name in lines if name.startswith("topics_pipeline_up")] == [
        'topics_pipeline_up{pipeline="t42:busy",kind="insert"}'
    ]
