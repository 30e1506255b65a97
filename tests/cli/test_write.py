from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.rig import Command, spawn
from tests.cli.standin import somebody_says
from tests.e2e.served import Served
from topics.cli import source


def data(topics: Command, topic: str) -> list[object]:
    return [record["data"] for record in topics.good("read", topic)]


def test_arguments_are_one_atomic_write(topics: Command, topic: str) -> None:
    (said,) = topics.good("write", topic, '{"sku": "A1"}', "null", "1.10", "--tag", "order-1", "--node", "n1")
    assert said == {
        "topic": topic,
        "partition": 0,
        "first_seq": 1,
        "last_seq": 3,
        "count": 3,
        "created": True,
        "deduped": False,
    }
    first, _, last = topics.good("read", topic)
    assert (first["data"], first["$tag"], first["$node"]) == ({"sku": "A1"}, "order-1", "n1")
    assert '"data":1.10' in topics("read", topic).out, "data is kept digit for digit"
    assert last["$seq"] == 3


def test_meta_and_text(topics: Command, topic: str) -> None:
    topics.good("write", topic, "it's plain", "--text", "--meta", "trace=17", "--meta", "a=b=c")
    (record,) = topics.good("read", topic)
    assert (record["data"], record["meta"]) == ("it's plain", {"trace": "17", "a": "b=c"})


def test_a_named_write_is_written_once(topics: Command, topic: str) -> None:
    for deduped in (False, True):
        (said,) = topics.good("write", topic, "1", "--idempotency-key", "request-17")
        assert (said["first_seq"], said["deduped"]) == (1, deduped)
    assert data(topics, topic) == [1]


def test_files_are_written_in_order(topics: Command, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f"{number}\n" for number in range(2500)))
    (tmp_path / "b.jsonl").write_text('\n  {"last": true}')
    (said,) = topics.good("write", topic, "--file", tmp_path / "a.jsonl", "-i", tmp_path / "b.jsonl")
    assert (said["count"], said["last_seq"]) == (2501, 2501)
    assert data(topics, topic) == [*range(2500), {"last": True}]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"a": }', "it is not JSON: invalid character (byte 6)"),
        (b"hello", "it is not JSON"),
        (b'"\xff"', "it is not UTF-8: invalid start byte at byte 2"),
        (b"[" * 3000, "it is nested too deeply"),
        (b"1 2", "it is not JSON: trailing characters"),
    ],
)
def test_a_bad_line_of_a_file_changes_nothing(
    topics: Command, topic: str, tmp_path: Path, line: bytes, what: str
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"1\n" * 3000 + line + b"\n2\n")
    said = topics("write", topic, "--file", tmp_path / "a.jsonl")
    assert (said.code, said.out) == (2, "")
    assert f"{tmp_path / 'a.jsonl'} line 3001: {what}" in said.err
    assert said.err.count("\n") == 1
    assert topics("read", topic).code == 3, "not even the topic is there"


def test_a_record_that_is_too_large_says_how_far_it_came(topics: Command, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("1\n" * 1000 + json.dumps("x" * (2 << 20)))
    said = topics("write", topic, "--file", tmp_path / "a.jsonl")
    assert said.code == 2
    assert "record_too_large" in said.err and "1,000 records before it were written, up to seq 1000" in said.err
    assert len(data(topics, topic)) == 1000


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("1", "--file", "x"), "DATA and --file both say what to write"),
        (("--records", "--text"), "--records says what lines are made of"),
        (("1", "--records"), "--records says what lines are made of"),
        (("--idempotency-key", "a"), "--idempotency-key names one write"),
        (("1", "--meta", "novalue"), "expected NAME=TEXT"),
        (("hello",), "DATA 1: it is not JSON"),
        (("1", "--partition", "7"), "partition"),
        (("1", "--partition", "0", "--partition-key", "a"), "partition and key both choose the partition"),
        (("1", "--tag", "x" * 300), "tag has 300 bytes, at most 256"),
    ],
)
def test_what_cannot_be_meant_is_refused(topics: Command, topic: str, arguments: tuple[str, ...], what: str) -> None:
    said = topics("write", topic, *arguments)
    assert (said.code, said.out) == (2, "")
    assert what in said.err


@pytest.mark.parametrize("name", ["", "-x", "a b", "ü", "x" * 300])
def test_a_name_that_is_none(topics: Command, name: str) -> None:
    assert topics("write", name, "1").code == 2


def test_a_file_that_is_not_there(topics: Command, topic: str, tmp_path: Path) -> None:
    said = topics("write", topic, "--file", tmp_path / "nowhere.jsonl")
    assert said.code == 3
    assert "nowhere.jsonl does not exist; expected a file of JSON lines" in said.err
    assert topics("write", topic, "--file", tmp_path).code == 2, "a directory is no file"


def test_a_topic_that_must_exist(topics: Command, topic: str) -> None:
    topics.good("topic", "create", f"{topic}-other")
    said = topics("write", topic, "1", "--no-create")
    assert said.code == 3
    assert "topic_not_found" in said.err and "`topics topic ls`" in said.err


def test_keys_choose_partitions(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--partitions", "4")
    chosen = {topics.good("write", topic, "1", "--partition-key", key)[0]["partition"] for key in "abcdefgh"}
    assert len(chosen) > 1 and chosen <= {0, 1, 2, 3}


# ---- stdin, which only a process of its own has


def test_stdin_is_written_as_it_comes(server: Served, topic: str) -> None:
    said = spawn("write", topic, "--url", server.url, stdin="1\n\n2\n3")
    assert (said.returncode, said.stderr) == (0, "")
    assert json.loads(said.stdout)["count"] == 3
    assert json.loads(spawn("write", topic, "--url", server.url, stdin="").stdout)["count"] == 0


def test_a_bad_line_of_stdin_says_how_far_it_came(server: Served, topic: str) -> None:
    said = spawn("write", topic, "--url", server.url, stdin="1\n" * 1500 + "{\n2\n")
    assert (said.returncode, said.stdout) == (2, "")
    assert "stdin line 1501: it is not JSON" in said.stderr
    assert "1,000 records before it were written, up to seq 1000" in said.stderr
    assert "Traceback" not in said.stderr


def test_what_was_read_can_be_written_elsewhere(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--cap-records", "2")
    topics.good("write", topic, "1", "2", '{"x": 1.10}', "--tag", "t", "--node", "n", "--meta", "a=b")
    read = spawn("read", topic, *topics.where)
    said = spawn("write", f"{topic}-copy", "--records", *topics.where, stdin=read.stdout)
    assert said.returncode == 0
    assert "stdin line 1: 1 to 1 were lost at their source (cap)" in said.stderr, "a gap is not hidden"
    copied = topics.good("read", f"{topic}-copy")
    kept = ("data", "$tag", "$node", "meta")
    assert [[record[name] for name in kept] for record in copied] == [
        [2, "t", "n", {"a": "b"}],
        [{"x": 1.1}, "t", "n", {"a": "b"}],
    ]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"tga": "x", "data": 1}', "unknown field `tga`"),
        ('{"tag": "x"}', 'it has no "data"'),
        ("[1]", "Expected `object`, got `array`"),
        ('{"data": 1, "meta": {"a": 1}}', "Expected `str`, got `int`"),
    ],
)
def test_a_line_that_is_no_record(topics: Command, topic: str, tmp_path: Path, line: str, what: str) -> None:
    (tmp_path / "a.jsonl").write_text(line)
    said = topics("write", topic, "--records", "--file", tmp_path / "a.jsonl")
    assert said.code == 2 and what in said.err


def test_text_must_be_utf8(topics: Command, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\r\nb\xe4d\n")
    said = topics("write", topic, "--text", "--file", tmp_path / "a.txt")
    assert (said.code, said.out) == (2, "")
    assert f"{tmp_path / 'a.txt'} line 2: it is not UTF-8: invalid continuation byte at byte 2" in said.err


def test_nothing_but_gaps_is_nothing_to_write(topics: Command, topic: str, tmp_path: Path) -> None:
    gap = '{"gap_from": 1, "gap_to": 2, "reason": "cap"}\n'
    (tmp_path / "a.jsonl").write_text(gap)
    said = topics("write", topic, "--records", "--file", tmp_path / "a.jsonl", "--no-json")
    assert (said.code, said.out) == (0, "nothing to write\n") and "1 to 2 were lost at their source" in said.err
    topics.good("topic", "create", "there", "--if-missing")
    with somebody_says(gap):
        said = topics("write", topic, "--records", "--no-json")
    assert (said.code, said.out) == (0, "nothing to write\n")
    assert topics("read", topic).code == 3, "the topic is not made"


def test_a_line_without_an_end_is_refused(
    topics: Command, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "LINE_BYTES_MAX", 100)
    (tmp_path / "a.jsonl").write_text("1\n" + "2" * 101)
    said = topics("write", topic, "--file", tmp_path / "a.jsonl")
    assert (said.code, said.out) == (2, "")
    assert f"{tmp_path / 'a.jsonl'} line 2 has more than 100 bytes; expected a record on each line" in said.err
