"""An event stream on a connection that does as the test says, under a clock that does, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop
from tests.engine.watchrig import WatchRig
from tests.server.api import serving
from tests.server.piping import Edge, Pipe
from tests.server.sserig import Frame, listening, parse_frame, watching
from topics.engine.events import Event, Kind
from topics.server.principal import EVERYBODY
from topics.server.sse import NAMED_MAX, EventStream, error_frame, nameless, whole, whole_chunk

BUFFER_BYTES = 2000
SLOW_MS = 30_000


def opened(topics: dict[str, object], **options: object) -> tuple[WatchRig, Edge, str, Pipe]:
    rig = WatchRig()
    for topic in topics:
        if not topic.endswith("*"):
            rig.write(topic, 1)
    edge = Edge(rig, watch_buffer_bytes=BUFFER_BYTES, slow_consumer_timeout_ms=SLOW_MS)
    url = edge.watch(topics, **options)
    pipe = edge.open(url)
    assert pipe is not None
    rig.pump()
    return rig, edge, url, pipe


def kinds(frames: list[Frame]) -> list[str]:
    return [frame.event or frame.comment.split(" ")[0] or "retry" for frame in frames]


def read_all(rig: WatchRig, pipe: Pipe) -> list[Frame]:
    """Read until nothing more comes."""
    found: list[Frame] = []
    rig.pump()
    while pipe.unread:
        found += pipe.frames()
        rig.pump()
    return found


def pass_time(rig: WatchRig, pipe: Pipe, ms: int, step_ms: int = 500) -> None:
    for _ in range(ms // step_ms):
        rig.clock.advance(step_ms)
        pipe.tick(rig.clock.ticks_ns())


# ---- forms


def test_the_bytes_of_an_event() -> None:
    event = Event(kind=Kind.CAUGHT_UP, key="jobs", cursor=5210, text=b'"topic":"jobs","head_seq":5210}')
    frame = b'event: caught-up\ndata: {"topic":"jobs","head_seq":5210}\n\n'
    assert nameless(event) == frame
    assert whole(event) == b"id: eyJqb2JzIjo1MjEwfQ\n" + frame
    assert whole_chunk(event) == b"%x\r\n%b\r\n" % (len(whole(event)), whole(event))


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_its_name(kind: Kind) -> None:
    event = Event(kind=kind, key="jobs", cursor=1, text=b"}")
    assert parse_frame(nameless(event).strip()).event == kind.value.replace("_", "-")


def test_an_error_has_no_id() -> None:
    frame = parse_frame(error_frame(429, "behind", retry_after_ms=1500, topics=["events"]).strip())
    assert frame.id is None
    assert frame.fields == {"code": 429, "error": "behind", "retry_after_ms": 1500, "topics": ["events"]}


# ---- heartbeats


def test_a_heartbeat_comes_after_silence_only() -> None:
    rig, _, _, pipe = opened({"jobs": {}}, heartbeat_ms=10_000)
    assert kinds(pipe.frames()) == ["retry", "record", "caught-up"]
    pass_time(rig, pipe, 9_500)
    assert pipe.frames() == []
    rig.write("jobs", 2)
    rig.pump()
    pass_time(rig, pipe, 9_500)
    assert kinds(pipe.frames()) == ["record"], "data is as good as a heartbeat"
    pass_time(rig, pipe, 500)
    (beat,) = pipe.frames()
    assert beat.comment == f"hb {rig.clock.now_ms()}" and beat.id is None
    pass_time(rig, pipe, 30_000)
    assert kinds(pipe.frames()) == ["hb"] * 3


# ---- slow consumers


def test_a_full_connection_is_given_nothing_until_it_is_read() -> None:
    rig, edge, _, pipe = opened({"jobs": {}})
    other = edge.open(edge.watch({"jobs": {}}))
    assert other is not None
    for _ in range(20):
        rig.write("jobs", "x" * 500)
        rig.pump()
        other.read()
    assert BUFFER_BYTES < len(pipe.unread) < BUFFER_BYTES + 1000
    frames = pipe.frames()
    rig.pump()
    frames += pipe.frames()
    seqs = [seq for frame in frames if frame.event == "record" for seq in frame.seqs]
    assert seqs == list(range(1, 22))
    assert len([frame for frame in frames if frame.event == "record"]) < 10, "the rest came in fewer, larger batches"


def test_a_stream_behind_answers_that_nobody_has_read_waits_for_them() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    edge = Edge(rig, watch_buffer_bytes=BUFFER_BYTES, slow_consumer_timeout_ms=SLOW_MS)
    pipe = edge.open(edge.watch({"jobs": {}}), full=True)
    assert pipe is not None
    rig.pump()
    assert b"event: record" not in pipe.unread
    frames = [frame for frame in read_all(rig, pipe) if frame.comment != "before"]
    assert kinds(frames) == ["retry", "record", "caught-up"]


def test_who_does_not_read_is_told_and_dropped_and_can_come_back() -> None:
    rig, edge, url, pipe = opened({"jobs": {}})
    for _ in range(20):
        rig.write("jobs", "x" * 500)
        rig.pump()
    pass_time(rig, pipe, SLOW_MS - 500)
    assert not pipe.ended
    pass_time(rig, pipe, 500)
    assert pipe.ended
    frames = pipe.frames()
    assert (frames[-1].event, frames[-1].fields["code"], frames[-1].id) == ("error", 408, None)
    assert edge.context.quota.stream_count == 0
    last = [frame for frame in frames if frame.id][-1]
    again = edge.open(url, str(last.id))
    assert again is not None
    rig.pump()
    seqs = [seq for frame in [*frames, *again.frames()] if frame.event == "record" for seq in frame.seqs]
    assert seqs == list(range(1, 22)), "nothing is lost, nothing comes twice"


def test_who_reads_again_in_time_is_not_dropped() -> None:
    rig, _, _, pipe = opened({"jobs": {}})
    for _ in range(3):
        for _ in range(10):
            rig.write("jobs", "x" * 500)
            rig.pump()
        pass_time(rig, pipe, SLOW_MS - 500)
        pipe.read()
        rig.pump()
        pipe.read()
    assert not pipe.ended


# ---- ids


def test_an_id_names_all_topics_until_there_are_too_many() -> None:
    rig, edge, url, pipe = opened({"t:*": {}})
    for number in range(NAMED_MAX):
        rig.write(f"t:{number}", number)
        rig.pump()
        pipe.frames()
    rig.write("t:0", "x")
    rig.pump()
    named = pipe.frames()[-1]
    assert len(named.positions) == NAMED_MAX and named.positions["t:0"] == 2
    rig.write("t:more", 1)
    rig.pump()
    numbered = pipe.frames()
    assert all("$at" in frame.positions for frame in numbered)
    rig.write("t:1", "y")
    rig.write("t:2", "z")
    rig.pump()
    pipe.cut()
    for back_to, expected in ((numbered[-1], {"t:1", "t:2"}), (named, {"t:more", "t:1", "t:2"})):
        pipe = edge.open(url, str(back_to.id)) or pipe
        found = {frame.fields["topic"] for frame in read_all(rig, pipe) if frame.event == "record"}
        assert found == expected
        pipe.cut()


def numbered(rig: WatchRig, edge: Edge) -> tuple[str, Pipe, list[Frame]]:
    """A stream of more topics than an id can name, and what came on it."""
    for number in range(NAMED_MAX + 1):
        rig.write(f"t:{number}", number)
    url = edge.watch({"t:*": {}})
    pipe = edge.open(url)
    assert pipe is not None
    return url, pipe, read_all(rig, pipe)


def test_a_number_of_an_open_stream_is_a_cursor_for_another_one() -> None:
    rig = WatchRig()
    edge = Edge(rig)
    _, pipe, frames = numbered(rig, edge)
    rig.write("t:0", "x")
    rig.pump()
    newer = pipe.frames()[-1]
    for back_to, expected in ((frames[-1], {"t:0"}), (newer, set())):
        other = edge.open(edge.watch({"t:*": {}}, cursor=back_to.id))
        assert other is not None
        records = [frame for frame in read_all(rig, other) if frame.event == "record"]
        assert {frame.fields["topic"] for frame in records} == expected
        other.cut()
    assert not pipe.ended, "the one whose number it is goes on"


def test_a_topic_that_went_while_nobody_read_is_told_by_number() -> None:
    rig = WatchRig()
    edge = Edge(rig)
    url, pipe, frames = numbered(rig, edge)
    pipe.cut()
    rig.drop("t:1")
    last = frames[-1]
    for _ in range(2):
        pipe = edge.open(url, str(last.id)) or pipe
        first, gone, *_ = read_all(rig, pipe)
        assert (kinds([first, gone]), gone.fields["topic"]) == (["retry", "topic-deleted"], "t:1")
        assert gone.positions["$at"] > last.positions["$at"]
        pipe.cut()
    pipe = edge.open(url, str(gone.id)) or pipe
    assert "topic-deleted" not in kinds(read_all(rig, pipe)), "once it was heard it is not said again"


def test_a_topic_that_comes_back_within_a_stream_has_its_epoch_in_the_id() -> None:
    rig, edge, url, pipe = opened({"t:*": {}})
    rig.write("t:1", 1, 2, 3)
    rig.pump()
    first = pipe.frames()[-1]
    rig.drop("t:1")
    rig.write("t:1", "anew")
    rig.pump()
    frames = pipe.frames()
    assert kinds(frames) == ["topic-deleted", "record", "caught-up"]
    epoch = rig.engine.state("t:1").epoch
    assert frames[-1].positions == {"t:1": 1, "$epochs": {"t:1": epoch}}
    pipe.cut()
    pipe = edge.open(url, str(first.id)) or pipe
    rig.pump()
    assert [frame.fields.get("reason") for frame in pipe.frames()[1:2]] == ["recreated"], "it has not heard of it yet"


# ---- what the engine says beside events


def test_who_must_wait_is_told() -> None:
    _, edge, url, pipe = opened({"jobs": {}})
    pipe.frames()
    session = edge.context.sessions.find(url.removeprefix("/v0/watch/"), EVERYBODY)
    stream = session.stream
    assert isinstance(stream, EventStream)
    stream.paced(["jobs"], 1500)
    (frame,) = pipe.frames()
    assert frame.event == "error" and frame.id is None
    assert (frame.fields["code"], frame.fields["retry_after_ms"], frame.fields["topics"]) == (429, 1500, ["jobs"])


def test_a_topic_that_cannot_be_read_is_told_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    rig = WatchRig()
    rig.write("bad", *range(4000))
    rig.checkpoint()
    rig.disk = rig.disk.kill()
    (path,) = [path for path in rig.disk.contents() if path.endswith(".data")]
    file = rig.disk.open(path, "write")
    file.write_at(1000, [b"!"])
    file.close()
    rig.start()
    rig.write("good", 1)
    edge = Edge(rig)
    pipe = edge.open(edge.watch({"bad": {}, "good": {}}))
    assert pipe is not None
    rig.pump()
    frames = pipe.frames()
    assert kinds(frames) == ["retry", "error", "record", "caught-up"]
    assert frames[1].fields["code"] == 500 and frames[1].fields["topics"] == ["bad"]
    assert "watching bad failed" in caplog.text


def test_a_wildcard_that_matches_too_many_is_told() -> None:
    rig, _, _, pipe = opened({"a:*": {}})
    for number in range(10):
        rig.configure(f"a:{number}", partitions=1000)
    rig.pump()
    pipe.read()
    rig.configure("a:more")
    (frame,) = pipe.frames()
    assert (frame.event, frame.fields["code"], frame.fields["topics"]) == ("error", 429, ["a:more"])


def test_a_wildcard_that_matches_too_many_by_the_time_it_is_opened_is_told() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    edge = Edge(rig)
    url = edge.watch({"a:*": {}, "jobs": {}})
    for number in range(10):
        rig.configure(f"a:{number}", partitions=1000)
    rig.configure("a:more")
    pipe = edge.open(url)
    assert pipe is not None
    rig.pump()
    frames = read_all(rig, pipe)
    (refused,) = [frame for frame in frames if frame.event == "error"]
    assert refused.fields["code"] == 429 and refused.id is None
    assert [frame.fields["topic"] for frame in frames if frame.event == "record"] == ["jobs"], "the rest goes on"


def test_a_defect_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    _, edge, url, pipe = opened({"jobs": {}})
    pipe.frames()
    stream = edge.context.sessions.find(url.removeprefix("/v0/watch/"), EVERYBODY).stream
    assert isinstance(stream, EventStream) and stream._watcher is not None
    stream.failed(stream._watcher.subscriptions["jobs"], RuntimeError("a bug of ours"))
    (frame,) = pipe.frames()
    assert frame.fields == {"code": 500, "error": "an internal error", "topics": ["jobs"]}
    assert "a bug of ours" in caplog.text


# ---- the end


def test_a_stream_that_never_opened_leaves_the_session_alone() -> None:
    rig, edge, url, pipe = opened({"jobs": {}})
    answer = edge.call("GET", url)
    answer.close()  # type: ignore[attr-defined]
    rig.write("jobs", 2)
    rig.pump()
    assert kinds(pipe.frames())[-1] == "record" and not pipe.ended


def test_nothing_is_left_when_a_stream_has_ended() -> None:
    rig, edge, _, pipe = opened({"jobs": {}, "t:*": {}})
    pipe.cut()
    assert len(rig.watch) == 0 and edge.context.quota.stream_count == 0
    rig.write("t:1", 1)
    rig.pump()
    assert len(rig.watch) == 0


def test_a_stream_that_opens_full_has_the_time_of_a_slow_client() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    edge = Edge(rig, watch_buffer_bytes=2000, slow_consumer_timeout_ms=30_000)
    pipe = edge.open(edge.watch({"jobs": {}}, heartbeat_ms=10_000), full=True)
    assert pipe is not None
    rig.clock.advance(11_000)
    pipe.tick(rig.clock.ticks_ns())
    assert not pipe.ended, "nothing was read for 11 of 30 seconds"


@on_loop
async def test_who_asks_for_the_head_of_a_stream_takes_it_from_nobody(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        url = await watching(api, {"jobs": {}})
        async with listening(api, url) as stream:
            assert (await stream.until("record"))[-1].seqs == [1]
            head = await api.call("HEAD", url)
            assert (head.status, head.raw) == (200, b"")
            await api.write("jobs", 2)
            assert (await stream.until("record"))[-1].seqs == [2]


@on_loop
@pytest.mark.parametrize("topics", [{"t:low": {}, "t:high": {}}, {"t:*": {}}])
async def test_higher_backlog_of_a_stream_comes_before_a_lower_one(topics: dict[str, Any], tmp_path: Path) -> None:
    """The backlogs are larger than the connection takes at once, so the stream stops and continues many times."""
    async with serving(tmp_path) as api:
        for topic, priority in (("t:low", -1000), ("t:high", 1000)):
            await api.put(f"/v0/topics/{topic}", {"priority": priority})
            for _ in range(20):
                await api.write(topic, *["x" * 2000] * 200)
        async with listening(api, await watching(api, topics)) as stream:
            order: list[str] = []
            while len(order) < 8000:
                frame = await stream.next()
                if frame.event == "record":
                    order += [frame.fields["topic"]] * len(frame.seqs)
            assert order == ["t:high"] * 4000 + ["t:low"] * 4000
