"""A server on a small disk that fills up: it says so, loses nothing that it acked, and goes on when there is room."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.results import save
from proof.tree import tree_hash
from tests.e2e.served import Caller, refusal, served
from tests.e2e.smalldisk import small_disk

RECORD = "x" * 100_000
WRITES_MAX = 1_000
"""More than fit on the disk, so that it is full before."""
FLAGS = ("--wal-file-bytes", "256KiB", "--segment-bytes", "512KiB", "--checkpoint-ms", "200", "--wal-shards", "2")


def write(caller: Caller, number: int) -> tuple[int, dict[str, object]]:
    body = {"records": [{"data": [number, RECORD]}], "config": {"durability": "fsync"}}
    status, answer = caller.ask("POST", f"/v0/topics/t{number % 3}", body)
    return status, answer


def stored(caller: Caller) -> list[int]:
    """The numbers of all records there are, read page by page without any loss."""
    found: list[int] = []
    for name in ("t0", "t1", "t2"):
        from_seq, caught_up = 0, False
        while not caught_up:
            status, page = caller.ask("POST", f"/v0/topics/{name}/diff", {"from_seq": from_seq, "limit": 100})
            assert (status, page["tombstone"]) == (200, None), page
            found += [record["data"][0] for record in page["records"]]
            from_seq, caught_up = page["next_from_seq"], page["caught_up"]
    return sorted(found)


def fill_up(kind: str, place: Path) -> int:
    """How many writes were acked before the disk was full."""
    acked: list[int] = []
    with small_disk(kind, place) as disk:
        data = disk.directory / "data"
        with served(data, *FLAGS) as server, server.connect() as caller:
            for number in range(WRITES_MAX):
                status, answer = write(caller, number)
                if status not in (200, 201):
                    break
                acked.append(number)
            assert status == 503 and "No space left on device" in str(answer), answer
            assert stored(caller) == acked, "reads go on, and show what was acked"
            assert caller.ask("GET", "/v0/health")[0] == 200
            server.kill()
        code, said = refusal(data, *FLAGS)
        assert code and "No space left on device" in said and "see to the disk of" in said, said
        disk.make_room()
        with served(data, *FLAGS) as server, server.connect() as caller:
            assert stored(caller) == acked, "nothing that was acked was lost"
            status, answer = write(caller, WRITES_MAX)
            assert status == 200, answer
            assert stored(caller) == [*acked, WRITES_MAX]
            assert server.stop() == 0, server.said
    return len(acked)


def test_a_disk_that_fills_up_loses_nothing(tmp_path: Path) -> None:
    fill_up("tmpfs", tmp_path)


@pytest.mark.soak
def test_every_kind_of_disk_that_fills_up_loses_nothing(tmp_path: Path) -> None:
    acked = {kind: fill_up(kind, tmp_path) for kind in ("tmpfs", "ext4")}
    save("disk", "make soak ONLY=disk", {"tree": tree_hash(), "disks": acked})
