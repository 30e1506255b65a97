"""What a runner makes of the text that a dead query leaves."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkRuntimeError

from topics.spark.pipeline.stops import FINAL, REFUSED, told

TRACE = """[STREAM_FAILED] Query [id = 1] terminated with exception: Python worker failed
  File "deltachanges.py", line 80, in read_versions
topics.spark.pipeline.stops.PositionGone: version 3 cannot be read any more

\tat org.apache.spark.api.python.PythonRunner
"""


def test_an_error_of_ours_is_found_within_a_trace() -> None:
    assert told(TRACE) == ("PositionGone", "version 3 cannot be read any more")
    assert "PositionGone" in FINAL and "TableChanged" not in FINAL


def test_of_any_other_the_first_line_is_told() -> None:
    assert told("\n[DIVIDE_BY_ZERO] Division by zero.\n at x") == ("", "[DIVIDE_BY_ZERO] Division by zero.")
    assert told("") == ("", "nothing is known about it")


def test_of_an_error_of_python_the_error_itself_is_told() -> None:
    """What an administrator sees whose cluster has another Python."""
    begin = "[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance:"
    trace = f'{begin} Traceback (most recent call last):\n  File "worker.py", line 1, in main\n    load()\n'
    why = "ModuleNotFoundError: No module named 'topics'"
    assert told(f"{trace}{why}\n\n\tat org.apache.spark") == ("", f"{begin} {why}")
    assert told(trace) == ("", begin.rstrip(":"))


@pytest.mark.parametrize("kind", [AnalysisException, ParseException])
def test_a_query_that_spark_refuses_has_failed_for_good(kind: type[Exception]) -> None:
    assert told(kind("[UNRESOLVED_COLUMN] a column nope cannot be resolved")) == (
        REFUSED,
        "[UNRESOLVED_COLUMN] a column nope cannot be resolved",
    )
    assert REFUSED in FINAL


def test_what_fails_in_a_source_while_spark_plans_may_pass() -> None:
    class FromSource(AnalysisException):
        def getCondition(self) -> str:
            return "PYTHON_DATA_SOURCE_ERROR"

    assert told(FromSource("[PYTHON_DATA_SOURCE_ERROR] it broke"))[0] == ""
    ours = "[X] failed\ntopics.errors.ConnectionFailed: cannot connect"
    assert told(AnalysisException(ours)) == ("ConnectionFailed", "cannot connect")
    assert told(PySparkRuntimeError("[BROKEN] it broke"))[0] == ""
