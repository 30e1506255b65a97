"""Series, overview and settings over a real socket."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.accountrig import ADMIN_KEY, Served, accounts_served
from tests.server.api import Api, serving
from tests.server.queues import bury
from topics.limits import DAY_MS, GIB
from topics.server import observing
from topics.server.observing import LAGS_KEPT, SIGNS_BEATS
from topics.server.series import SERIES
from topics.server.storagesize import StorageSize


async def beats(served: Served, count: int) -> None:
    """Seconds go by."""
    for _ in range(count):
        served.clock.ahead_ms += 1000
        await served.context.observer.beat(served.context.host.engine)


@on_loop
async def test_what_happens_shows_in_the_series(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        await beats(served, 2)
        for _ in range(3):
            await served.api.write("orders", 1, 2)
        await served.api.diff("orders")
        await served.api.get("/v0/topics/none")
        await beats(served, 12)
        found = (await served.api.get("/v0/series")).body
        assert found["step_ms"] == 1000 and set(found["series"]) == set(SERIES)
        assert len(found["times"]) >= 12 and found["times"] == sorted(found["times"])
        sums = {name: sum(value or 0 for value in each["values"]) for name, each in found["series"].items()}
        assert min(sums[name] for name in ("records", "writes", "reads", "errors")) > 0
        assert sums["wal_bytes"] > 0 and sums["free_disk"] > 0 and sums["wal_disk"] > 0
        last = found["times"][-3]
        newer = (await served.api.get(f"/v0/series?since={last}&names=records,writes")).body
        assert newer["times"][:2] == found["times"][-2:] and set(newer["series"]) == {"records", "writes"}
        coarse = (await served.api.get("/v0/series?step=10s")).body
        assert coarse["step_ms"] == 10_000 and 1 <= len(coarse["times"]) < len(found["times"])
        for query, field in (("step=2s", "step"), ("names=records,nothing", "names")):
            refused = await served.api.get(f"/v0/series?{query}")
            assert refused.refusal == (400, "invalid_request") and refused.error["detail"]["field"] == field


@on_loop
async def test_latencies_are_the_bounds_that_half_and_99_of_100_lie_below(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        writes = served.context.traffic.of("POST", "/v0/topics/{topic}")
        await beats(served, 1)
        for fast, slow, slow_us in ((99, 1, 60_000_000), (98, 2, 60_000_000), (0, 2, 2000)):
            for took_us in [400] * fast + [slow_us] * slow:
                writes.answered(took_us * 1000)
            await beats(served, 1)
        await beats(served, 1)
        found = (await served.api.get("/v0/series?names=write_p50,write_p99")).body["series"]
        # Nothing in the first second; above all bounds is twice the last of them.
        assert found["write_p50"]["values"][-4:] == [None, 0.5, 0.5, 2.5]
        assert found["write_p99"]["values"][-4:] == [None, 0.5, 10_000, 2.5]


@on_loop
async def test_the_overview_shows_what_somebody_may_see(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=f"{ADMIN_KEY},narrow:r:tenant.") as served:
        served.api.key = ADMIN_KEY
        await beats(served, SIGNS_BEATS)
        await served.api.write("tenant.a", *range(50))
        await served.api.write("other", *range(20))
        await served.api.put("/v0/topics/x", {})
        await served.context.audit.mirror()
        await beats(served, 1)
        seen = (await served.api.get("/v0/overview")).body
        assert [each["topic"] for each in seen["top_topics"]] == ["tenant.a", "other"]
        assert seen["events"][-1]["kind"] == "started" and seen["logs"][0]["healthy"] is True
        assert seen["storage"]["free_bytes"] > 0 and seen["now"]["connections"] >= 0
        narrow = Api(served.server.url)
        narrow.key = "narrow"
        assert [each["topic"] for each in (await narrow.get("/v0/overview")).body["top_topics"]] == ["tenant.a"]


@on_loop
async def test_trouble_becomes_an_alert_and_goes_again(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        served.context.host.engine.checkpoint_error = OSError(28, "No space left on device")
        await beats(served, SIGNS_BEATS)
        (alert,) = [each for each in (await served.api.get("/v0/overview")).body["alerts"] if "check" in each["id"]]
        assert "No space left" in alert["text"] and alert["todo"] and alert["since_ts"]
        served.context.host.engine.checkpoint_error = None
        await beats(served, SIGNS_BEATS)
        seen = (await served.api.get("/v0/overview")).body
        assert not [each for each in seen["alerts"] if "check" in each["id"]]
        assert [each["kind"] for each in seen["events"] if "heckpoint" in each["text"]] == ["over", "alert"]


@on_loop
async def test_unreadable_disk_hides_no_other_alert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error", "/data/wal")

    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        served.context.host.engine.checkpoint_error = OSError(5, "Input/output error")
        with monkeypatch.context() as broken:
            broken.setattr(observing, "measure", fail)
            await beats(served, SIGNS_BEATS)
        assert set(await alert_ids(served)) == {"checkpoint_failing", "storage_unreadable"}
        await beats(served, SIGNS_BEATS)
        assert await alert_ids(served) == ["checkpoint_failing"]


async def alert_ids(served: Served) -> list[str]:
    return [each["id"] for each in (await served.api.get("/v0/overview")).body["alerts"]]


@on_loop
async def test_dead_letters_are_told_from_the_first_and_not_again_after_a_restart(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        await beats(served, SIGNS_BEATS)
        await bury(served.api, 2)
        await beats(served, SIGNS_BEATS)
        assert await alert_ids(served) == ["dead:jobs"]
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        await served.api.write("jobs", 5)
        await beats(served, SIGNS_BEATS)
        # Its clock shows the real time again, which is behind the stored one.
        assert await alert_ids(served) == ["clock_jumped"]


@on_loop
async def test_a_router_whose_lag_grows_is_told(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        await served.api.put("/v0/topics/small", {"cap_records": 1, "discard": "reject"})
        await served.api.write("source", 0)
        await served.api.put("/v0/routers/r", {"source": "source", "dest": "small", "from": "earliest"})
        await beats(served, SIGNS_BEATS)
        await served.api.write("source", *range(1500))
        await beats(served, SIGNS_BEATS)
        assert "lag:router:source:r" in await alert_ids(served)


@on_loop
async def test_a_disk_that_fills_is_told_with_the_time_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observing, "LAGS_KEPT", 4)
    used = iter(range(1, 100))

    def measured(*_: object) -> StorageSize:
        gib = next(used)
        return StorageSize(wal_bytes=GIB, hot_bytes=gib * GIB, free_bytes=(100 - gib) * GIB)

    monkeypatch.setattr(observing, "measure", measured)
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        await beats(served, 1)
        assert await alert_ids(served) == [], "one look says nothing"
        await beats(served, SIGNS_BEATS)
        (alert,) = (await served.api.get("/v0/overview")).body["alerts"]
        # A GiB in ten seconds, and 98 are left.
        assert alert["id"] == "disk_filling"
        assert alert["text"] == "98.0 GiB are left, and full in 0.3 h at this rate."


@on_loop
async def test_others_on_the_same_file_system_are_no_trend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "LAGS_KEPT", 4)
    free = iter(range(100, 0, -1))
    monkeypatch.setattr(observing, "measure", lambda *_: StorageSize(hot_bytes=GIB, free_bytes=next(free) * GIB))
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        await beats(served, 4 * SIGNS_BEATS)
        assert await alert_ids(served) == []


@on_loop
async def test_of_very_many_groups_some_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "POSITIONS_MAX", 1)
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        for topic in ("a", "b"):
            await served.api.write(topic, 1)
            await served.api.post(f"/v0/topics/{topic}/groups/g/reset", {"to": "earliest"})
        await beats(served, SIGNS_BEATS)
        for topic in ("a", "b"):
            await served.api.write(topic, *range(1500))
        await beats(served, SIGNS_BEATS)
        assert await alert_ids(served) == ["lag:group:a:g"]


@on_loop
async def test_settings_say_where_they_come_from_and_no_secret(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=f"{ADMIN_KEY},reader:r", wal_shards=3) as served:
        served.context.origins = {"wal_shards": "--wal-shards", "api_keys": "TOPICS_API_KEYS"}
        served.api.key = ADMIN_KEY
        answer = await served.api.get("/v0/settings")
        shown = {each["setting"]: each for each in answer.body["settings"]}
        assert (shown["wal_shards"]["value"], shown["wal_shards"]["origin"]) == (3, "--wal-shards")
        assert shown["api_keys"]["origin"] == "TOPICS_API_KEYS" and shown["log_level"]["origin"] == "default"
        assert ADMIN_KEY.encode() not in answer.raw
        reader = Api(served.server.url)
        reader.key = "reader"
        assert (await reader.get("/v0/settings")).status == 403


@on_loop
async def test_an_open_server_shows_all_of_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        assert (await api.get("/v0/series")).status == 200
        assert (await api.get("/v0/overview")).body["events"]
        assert (await api.get("/v0/settings")).body["settings"]


@on_loop
async def test_clock_that_jumped_is_an_alert_a_metric_and_a_log_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        await beats(served, SIGNS_BEATS)
        assert "clock_jumped" not in served.context.observer.alerts.current
        served.clock.jumped_ms = 3 * DAY_MS
        await beats(served, SIGNS_BEATS)
        assert caplog.text.count("the wall clock jumped") == 1
        alert = served.context.observer.alerts.current["clock_jumped"]
        assert f"{3 * DAY_MS // 1000:,} s ahead of" in alert.text
        exposed = (await served.api.get("/v0/metrics")).raw.decode()
        assert "topics_clock_jumps_total 1\n" in exposed
        ahead = re.search(r"^topics_clock_ahead_ms (\S+)$", exposed, re.M)
        assert ahead is not None and abs(float(ahead[1]) - 3 * DAY_MS) < 1000
        served.clock.jumped_ms = 0
        await beats(served, SIGNS_BEATS)
        assert "agrees with" in served.context.observer.alerts.current["clock_jumped"].text
        await beats(served, SIGNS_BEATS * LAGS_KEPT)
        assert "clock_jumped" not in served.context.observer.alerts.current
        assert caplog.text.count("the wall clock jumped") == 2
