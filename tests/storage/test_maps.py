from __future__ import annotations

from tests.storage.samples import block_of, key, live_rows, reopen, simple_rows, write
from topics.storage.maps import PARSED_BLOCK_BYTES, MapCache
from topics.testing import FakeDisk, FaultFs


def disk_with(*sizes: int) -> FakeDisk:
    disk = FakeDisk()
    disk.make_dir("/d")
    for number, size in enumerate(sizes):
        file = disk.open(f"/d/{number}", "create")
        file.write_at(0, [bytes([number]) * size])
        file.close()
    return disk


def find(name: str) -> str:
    return f"/d/{name}"


def maps_made(fs: FaultFs) -> list[str]:
    return [call.path for call in fs.calls if call.name == "map"]


def test_the_least_recently_used_mapping_goes_first() -> None:
    fs = FaultFs(disk_with(100, 100, 100))
    maps = MapCache(fs, 250)
    first = maps.use("0", find)
    maps.use("1", find)
    assert maps.use("0", find) is first
    maps.use("2", find)
    assert maps.used_bytes == 200
    maps.use("0", find)
    assert maps_made(fs) == ["/d/0", "/d/1", "/d/2"]
    maps.use("1", find)
    assert maps_made(fs)[3:] == ["/d/1"]


def test_a_view_outlives_its_mapping() -> None:
    maps = MapCache(disk_with(100, 100), 100)
    view = maps.use("0", find).view[10:20]
    maps.use("1", find)
    assert maps.used_bytes == 100
    assert bytes(view) == bytes(10)


def test_parsed_blocks_count_and_go_with_their_mapping() -> None:
    maps = MapCache(disk_with(100, 100), 100 + PARSED_BLOCK_BYTES)
    mapped = maps.use("0", find)
    maps.keep(mapped, 0, block_of(simple_rows(1, 1)))
    assert maps.used_bytes == 100 + PARSED_BLOCK_BYTES
    maps.use("1", find)
    assert maps.used_bytes == 100
    assert maps.use("0", find).blocks == {}


def test_a_file_larger_than_the_budget_is_mapped_all_the_same() -> None:
    maps = MapCache(disk_with(100, 100), 10)
    assert len(maps.use("0", find).view) == 100
    assert len(maps.use("1", find).view) == 100
    assert maps.used_bytes == 100


def test_dropping_frees_and_maps_anew() -> None:
    fs = FaultFs(disk_with(100))
    maps = MapCache(fs, 1000)
    maps.use("0", find)
    maps.drop("0")
    maps.drop("0")
    assert maps.used_bytes == 0
    maps.use("0", find)
    assert maps_made(fs) == ["/d/0", "/d/0"]
    maps.clear()
    assert maps.used_bytes == 0


def test_segments_are_read_right_with_hardly_any_memory() -> None:
    disk = FakeDisk()
    rows = simple_rows(1, 50)
    write(disk, 1, [(key(log_id), [rows]) for log_id in range(20)])
    segment = reopen(disk, 1, budget_bytes=1)
    runs = [segment.run(section_no) for section_no in range(20)]
    for run in runs:
        assert live_rows(run) == rows
    assert segment.maps.used_bytes <= segment.data_bytes + PARSED_BLOCK_BYTES
