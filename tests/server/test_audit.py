"""Lines of the audit log: those nobody waits for any more, floods of failures, and files that somebody changed."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop
from tests.core.test_auditchain import chain
from tests.server.api import serving
from topics.server import audit as module
from topics.server.audit import Audit
from topics.server.auditfile import AuditFile
from topics.testing import Call, FakeDisk, FaultFs, SimClock


def disk() -> FaultFs:
    inner = FakeDisk()
    inner.make_dir("/d")
    return FaultFs(inner)


def lines_of(fs: FaultFs) -> list[dict[str, Any]]:
    files = AuditFile(fs, "/d")
    return [json.loads(line) for path in files.files() for line in files.lines(path)]


async def note(audit: Audit, name: str) -> None:
    await audit.note("delete", name, key="key-1", over="http")


async def fail(audit: Audit, address: str) -> None:
    await audit.note_failure("key_refused", "/v0/topics", over="http", outcome="unauthorized", address=address)


@on_loop
async def test_a_line_whose_asker_went_is_written_and_the_others_are_told() -> None:
    fs = disk()
    audit = Audit(fs, "/d", SimClock())
    entered, leave = threading.Event(), threading.Event()

    def hold(_call: Call) -> None:
        entered.set()
        assert leave.wait(30)

    fs.skip("sync", path="*.jsonl").on_fire = hold
    first, second = asyncio.create_task(note(audit, "a")), asyncio.create_task(note(audit, "b"))
    assert await asyncio.to_thread(entered.wait, 30)
    first.cancel()
    third = asyncio.create_task(note(audit, "c"))
    leave.set()
    await asyncio.gather(second, third)
    assert first.cancelled()
    await audit.close()
    assert [(line["seq"], line["name"]) for line in lines_of(fs)] == [(1, "a"), (2, "b"), (3, "c")]


@on_loop
async def test_deeds_line_written_with_unsynced_ones_survives_a_power_loss() -> None:
    inner = FakeDisk()
    inner.make_dir("/d")
    audit = Audit(inner, "/d", SimClock())
    await note(audit, "first")
    audit.conclude("delete", "first", "done", key="key-1", over="http")
    await note(audit, "second")
    left = FaultFs(inner.crash("lost"))
    assert [(line["name"], line["outcome"]) for line in lines_of(left)] == [
        ("first", "begun"),
        ("first", "done"),
        ("second", "begun"),
    ]


@on_loop
async def test_who_fails_from_many_addresses_is_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FAILURE_NAMES_MAX", 2)
    monkeypatch.setattr(module, "FAILURES_PER_MINUTE", 1)
    fs = disk()
    audit = Audit(fs, "/d", SimClock())
    for address in ("a", "a", "b", "b", "b"):
        await fail(audit, address)
    assert [line["address"] for line in lines_of(fs)] == ["a", "b"], "one of each a minute"
    for address in ("c", "b", "a"):
        await fail(audit, address)
    await audit.close()
    assert len(audit._windows) == 2
    assert [line["address"] for line in lines_of(fs)] == ["a", "b", "c", "a"], "the one seen last is forgotten last"


@pytest.mark.parametrize("count", [2, 3], ids=["as many lines", "a line more"])
@on_loop
async def test_a_file_that_is_another_one_is_told_and_nothing_is_overwritten(
    count: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/a", {})
        assert (await api.get("/v1/audit/verify")).body["intact"] is True
    path = tmp_path / "data" / "audit" / "audit.jsonl"
    other = b"".join(line + b"\n" for line in chain(count))
    path.write_bytes(other)
    with caplog.at_level(logging.ERROR):
        async with serving(tmp_path) as api:
            assert path.read_bytes() == other
            entries = (await api.get("/v1/audit")).body["entries"]
            assert [entry["name"] for entry in entries] == ["a", "a"], "the copy is as it was"
            verdict = (await api.get("/v1/audit/verify")).body
            assert verdict["problem"] == "the file has another line 1, of which _audit has a copy"
            assert verdict["intact"] is False
    assert "do not fit: one of them was changed; see `topics audit verify`" in caplog.text
