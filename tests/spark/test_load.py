"""Files into a topic and out again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from topics.errors import InvalidRequest, NotFound
from topics.spark.export import export
from topics.spark.load import InputFile, Mapped, find_files, format_of, job_name, load, parts_of
from topics.sync import Client
from topics.testing.served import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [{"id": n, "name": f"n{n}", "text": "ä\u2028\U0001f600", "none": None} for n in range(20)]


def test_which_files(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.json", "_hidden.json", "c.csv", "sub/d.ndjson.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    found = find_files(str(tmp_path), "json")
    assert [Path(file.path).name for file in found] == ["a.json", "b.jsonl", "d.ndjson.gz"]
    assert [file.path for file in find_files(str(tmp_path / "c.csv"), "json")] == [str(tmp_path / "c.csv")]
    with pytest.raises(NotFound, match="no parquet files in"):
        find_files(str(tmp_path), "parquet")
    with pytest.raises(NotFound, match="no file or directory"):
        find_files(str(tmp_path / "nowhere"), "json")
    assert [format_of(name) for name in ("a.parquet", "a.JSON", "a.csv.gz", "a", "a.txt")] == [
        "parquet",
        "json",
        "csv",
        "",
        "",
    ]


def test_parts_and_names_of_jobs() -> None:
    files = [InputFile(f"{n}", size, 1) for n, size in enumerate((5, 5, 20, 1, 1))]
    assert [[file.path for file in part] for part in parts_of(files, 10)] == [["0", "1"], ["2"], ["3", "4"]]
    assert list(parts_of([], 10)) == []
    name = job_name("t", files, Mapped())
    assert name == job_name("t", files, Mapped())
    others = [job_name("u", files, Mapped()), job_name("t", files[1:], Mapped()), job_name("t", files, Mapped("x"))]
    assert len({name, *others}) == 4


def test_there_and_back(
    spark: SparkSession, topics_server: RunningServer, topics_client: Client, tmp_path: Path
) -> None:
    url = topics_server.url
    source = tmp_path / "in"
    source.mkdir()
    for start in (0, 10):
        lines = [json.dumps(row) for row in ROWS[start : start + 10]]
        (source / f"{start:02}.json").write_text("\n".join(lines))
    done: list[tuple[int, int]] = []
    for _ in range(2):
        told = load(
            spark,
            str(source),
            "t",
            url=url,
            kind="json",
            columns=Mapped(tag="name"),
            on_progress=lambda part, total: done.append((part, total)),
        )
    assert (told.files, told.count, told.topic) == (2, 20, "t")
    assert done[-1][0] == done[-1][1] > 0
    records = list(topics_client.topic("t").diff(include_tags=True).records)
    assert [record.data["id"] for record in records] == list(range(20)), "once, in the order of the files"
    assert [record.tag for record in records] == [f"n{n}" for n in range(20)]
    assert records[0].data["text"] == ROWS[0]["text"]
    exported = export(spark, "t", str(tmp_path / "out"), url=url, options={"schema": "id bigint, name string"})
    assert exported.count == 20
    rows = spark.read.parquet(exported.path).orderBy("seq").collect()
    assert [(row.seq, row.value.id, row.value.name) for row in rows] == [(n + 1, n, f"n{n}") for n in range(20)]
    assert load(spark, exported.path, "copy", url=url, kind="parquet", columns=Mapped("data", "tag")).count == 20
    copied = list(topics_client.topic("copy").diff().records)
    assert sorted(record.data["id"] for record in copied) == list(range(20))
    (tmp_path / "c.csv").write_text("a,b\n1,x\n2,y\n")
    load(spark, str(tmp_path / "c.csv"), "csv", url=url)
    assert [record.data for record in topics_client.topic("csv").diff().records] == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    with pytest.raises(InvalidRequest, match="there is no column z; there are a, b"):
        load(spark, str(tmp_path / "c.csv"), "csv", url=url, columns=Mapped("z"))
    with pytest.raises(InvalidRequest, match="which format is"):
        load(spark, str(tmp_path / "c.txt"), "csv", url=url)
