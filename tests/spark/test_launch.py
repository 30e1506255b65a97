"""A session that does not start says so in a way that a command can tell, and one that does keeps to itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from topics.spark.launch import ALWAYS

PROGRAM = """
from topics.spark.launch import NoJava, session
try:
    with session():
        pass
except NoJava as error:
    print(type(error.__cause__).__name__)
"""


def test_without_java(tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "nothing")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "PySparkRuntimeError\n"), done.stderr


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
