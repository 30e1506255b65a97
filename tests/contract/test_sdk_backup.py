"""`client.backup` in both forms: a file that is whole and of one moment, or no file."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop
from tests.contract.sdk import each_form, opened
from topics import errors, sync
from topics.clock import SystemClock
from topics.engine.recovery import Options
from topics.engine.unpacking import restore_archive
from topics.storage.fs import RealFs


def restored(archive: Path, at: Path) -> Path:
    restore_archive(RealFs(), str(archive), str(at), SystemClock(), lambda: secrets.randbits(64), Options())
    return at


@each_form
@pytest.mark.parametrize("gzip", [0, 6])
@on_loop
async def test_there_and_back(tmp_path: Path, form: str, gzip: int) -> None:
    told: list[tuple[int, int]] = []
    async with opened(form, tmp_path / "source") as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": number, "tag": f"t{number % 2}"} for number in range(10)])
        await orders.delete(match="t1")
        size = await client.backup(
            tmp_path / "a.tar", gzip=gzip, on_progress=lambda done, total: told.append((done, total))
        )
        await orders.write("too late")
    assert size == (tmp_path / "a.tar").stat().st_size == told[-1][0] and told[-1][1] > 0
    async with topics.open(restored(tmp_path / "a.tar", tmp_path / "copy")) as copy:
        assert [record.data for record in (await copy.topic("orders").diff()).records] == [0, 2, 4, 6, 8]
        assert (await copy.topic("orders").write(10)).first_seq == 11


@each_form
@on_loop
async def test_refusals_leave_no_file(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path / "source") as client:
        with pytest.raises(errors.InvalidRequest):
            await client.backup(tmp_path / "a.tar", gzip=10)
        (tmp_path / "b.tar").write_bytes(b"mine")
        with pytest.raises(errors.Conflict):
            await client.backup(str(tmp_path / "b.tar"))
        with pytest.raises(FileNotFoundError):
            await client.backup(tmp_path / "nowhere" / "a.tar")
        await client.backup(tmp_path / "c.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar", "c.tar", "source"]
    assert (tmp_path / "b.tar").read_bytes() == b"mine"


@each_form
@on_loop
async def test_nothing_is_begun_without_a_file_to_save_it_in(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(form, tmp_path / "source") as client:
        transport, asked = client._transport, []
        backup = transport.backup

        def counted(*, gzip_level: int) -> object:
            asked.append(gzip_level)
            return backup(gzip_level=gzip_level)

        monkeypatch.setattr(transport, "backup", counted)
        with pytest.raises(FileNotFoundError):
            await client.backup(tmp_path / "nowhere" / "a.tar")
        assert asked == []
        await client.backup(tmp_path / "a.tar", gzip=1)
        assert asked == [1]


def test_for_plain_code(tmp_path: Path) -> None:
    with sync.open(tmp_path / "source") as client:
        client.topic("orders").write(1)
        assert client.backup(tmp_path / "a.tar") == (tmp_path / "a.tar").stat().st_size
    with sync.open(restored(tmp_path / "a.tar", tmp_path / "copy")) as copy:
        assert [record.data for record in copy.topic("orders").diff().records] == [1]
