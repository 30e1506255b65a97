"""A session that does not start says so in a way that a command can tell, and one that does keeps to itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkRuntimeError
from pyspark.sql import SparkSession

from topics.spark.launch import ALWAYS, session

PROGRAM = """
import os, sys
from topics.spark.launch import NotStarted, session

def begin(master="local[1]", environment={}, **config):
    os.environ.update(environment)
    try:
        with session(master, config):
            pass
    except NotStarted as error:
        print(type(error).__name__, str(error), sep=": ")
    for name in environment:
        del os.environ[name]

begin(environment={"JAVA_HOME": sys.argv[1]})
begin(environment={"SPARK_HOME": sys.argv[1]})
begin(**{"spark.driver.memory": "much"})
begin("local[some]")
"""


def test_what_keeps_it_from_starting_is_told_as_what_it_is(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nothing")
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    program = [sys.executable, "-c", PROGRAM, nowhere]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    java, spark, setting, master = done.stdout.splitlines()
    assert java.startswith(f"NoJava: Spark needs Java, and there is none at JAVA_HOME={nowhere}: install a JRE")
    assert spark.startswith(f"NotStarted: there is no {nowhere}/./bin/spark-submit: SPARK_HOME names")
    assert setting.startswith(f"NotStarted: Spark's Java, {shutil.which('java')}, ended before it had begun")
    assert "Invalid maximum heap size: -Xmxmuch" in done.stderr, "Java itself says more"
    assert master == "NotStarted: Could not parse Master URL: 'local[some]'"


def test_what_spark_refuses_is_not_a_start_that_failed(spark: SparkSession) -> None:
    with pytest.raises(PySparkRuntimeError, match="SESSION_ALREADY_EXIST"), session("sc://nowhere:1"):
        pass


def test_a_text_names_no_file_and_no_variable_of_the_machine(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    texts = ("SELECT '${env:PATH}' AS value", f"SELECT value FROM text.`{tmp_path / 'secret'}`")
    ours = spark.newSession()
    for name, value in ALWAYS.items():
        ours.conf.set(name, value)
    assert ours.sql(texts[0]).collect()[0].value == "${env:PATH}"
    with pytest.raises(AnalysisException, match=r"TABLE_OR_VIEW_NOT_FOUND|REQUIRES_SINGLE_PART_NAMESPACE"):
        ours.sql(texts[1])
    # Without that, both are read.
    plain = spark.newSession()
    assert plain.sql(texts[0]).collect()[0].value == os.environ["PATH"]
    assert plain.sql(texts[1]).collect()[0].value == "secret"
