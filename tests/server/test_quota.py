from __future__ import annotations

import gc
from dataclasses import replace

import msgspec
import pytest

from tests.engine.rig import SMALL, Rig
from tests.server.outlets import Tape, streamed
from tests.server.probing import serving
from topics.core.machine import Bounds
from topics.core.records import RecordLimits
from topics.errors import NotFound, Throttled
from topics.secret import Secret
from topics.server.context import Context
from topics.server.dispatch import Dispatcher
from topics.server.message import Reply, Request, Response
from topics.server.principal import ALL_SCOPES, EVERYBODY, Principal, Scope
from topics.server.quota import Quota, Release
from topics.server.route import Handler, Operation, Route
from topics.server.streaming import StreamResponse
from topics.server.table import Table
from topics.settings import Settings
from topics.testing import SimClock

ANN = Principal("key-1", ALL_SCOPES)
BOB = Principal("key-2", ALL_SCOPES)


def full(quota: Quota, principal: Principal = ANN) -> bool:
    try:
        quota.enter(principal)()
    except Throttled:
        return True
    return False


def test_a_key_has_so_many_requests_under_way_and_no_more() -> None:
    quota = Quota(2)
    slots = [quota.enter(ANN), quota.enter(ANN)]
    with pytest.raises(Throttled, match="2 requests under way") as caught:
        quota.enter(ANN)
    assert caught.value.detail == {"limit": "max_inflight_per_key", "max": 2}
    assert not full(quota, BOB), "each key has its own"
    slots[0]()
    assert not full(quota)


def test_a_slot_given_back_twice_counts_once() -> None:
    quota = Quota(2)
    first, second = quota.enter(ANN), quota.enter(ANN)
    first()
    first()
    third = quota.enter(ANN)
    assert full(quota)
    second()
    third()


def test_a_slot_that_is_lost_comes_back() -> None:
    quota = Quota(1)

    def handler(release: Release) -> None:
        raise RuntimeError("never answers")

    with pytest.raises(RuntimeError):
        handler(quota.enter(ANN))
    gc.collect()
    assert not full(quota)


def test_who_is_gone_leaves_nothing_behind() -> None:
    quota = Quota(2)
    for number in range(100):
        quota.enter(Principal(f"key-{number}", ALL_SCOPES))()
    assert quota._inflight == {}


def test_without_keys_there_is_nobody_to_charge() -> None:
    quota = Quota(1)
    slots = [quota.enter(EVERYBODY) for _ in range(10)]
    for slot in slots:
        slot()


def test_zero_is_no_cap() -> None:
    quota = Quota(0)
    slots = [quota.enter(ANN) for _ in range(2000)]
    for slot in slots:
        slot()


class Answers(list[int]):
    def reply(self, response: Response) -> None:
        self.append(response.status)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), NotFound("no such thing")])
def test_the_dispatcher_gives_a_slot_back_when_a_handler_fails_and_its_error_is_kept(error: Exception) -> None:
    def fail(context: Context, request: Request, reply: Reply) -> None:
        raise error

    answers = asking(fail, times=3)
    assert 429 not in answers and len(answers) == 3
    assert error.__traceback__ is not None, "which keeps the frames that the slot was in"


def test_the_dispatcher_holds_a_slot_until_the_answer() -> None:
    replies: list[Reply] = []
    answers = asking(lambda context, request, reply: replies.append(reply), times=2)
    assert answers == [429]
    replies[0](Response(200))
    assert answers == [429, 200]


def asking(handler: Handler, times: int) -> Answers:
    """The answers to requests of one key, which may have one under way."""
    settings = Settings(api_keys=Secret("k"), max_inflight_per_key=1)
    context = Context(settings, RecordLimits(), SimClock(), 0)
    table = Table([Route("GET", "/x", Scope.READ, handler, Operation("", "", ""))])
    dispatch = Dispatcher(context, table, context.authenticator, context.quota)
    answers = Answers()
    for _ in range(times):
        dispatch(Request("GET", "/x", "", {"authorization": "Bearer k"}, b"", 0), answers.reply)
    return answers


@pytest.mark.parametrize(
    ("bounds", "detail"),
    [
        (Bounds(topics_max=1), {"limit": "max_topics", "max": 1}),
        (Bounds(total_bytes_max=8), {"limit": "max_total_bytes", "max": 8}),
    ],
)
def test_the_caps_of_the_engine_are_answered_alike(bounds: Bounds, detail: dict[str, object]) -> None:
    with serving(Rig(replace(SMALL, bounds=bounds))) as probe:
        body = b'{"records":[{"data":12345}]}'
        assert probe.post("/v0/topics/a", body).status == 201
        refused = probe.post("/v0/topics/b", body)
        assert refused.status == 429
        assert (b"Retry-After", b"1") in refused.headers
        assert msgspec.json.decode(refused.body)["error"]["detail"] == detail
    with serving(Rig(replace(SMALL, bounds=Bounds(topics_max=0, total_bytes_max=0)))) as probe:
        assert [probe.post(f"/v0/topics/{name}", body).status for name in "ab"] == [201, 201]


def stream_refusal(quota: Quota, principal: Principal = ANN) -> str | None:
    try:
        quota.open_stream(principal)()
    except Throttled as error:
        return str(error.detail["limit"])
    return None


def test_streams_have_caps_of_their_own() -> None:
    quota = Quota(1, streams_max=3, streams_per_key_max=2)
    slots = [quota.open_stream(ANN), quota.open_stream(ANN)]
    assert stream_refusal(quota) == "max_sse_connections_per_key"
    assert not full(quota), "a stream is no request under way"
    slots.append(quota.open_stream(BOB))
    assert quota.stream_count == 3
    assert stream_refusal(quota, BOB) == stream_refusal(quota, EVERYBODY) == "max_sse_connections"
    for slot in slots:
        slot()
        slot()
    assert quota.stream_count == 0 and quota._streams == {}


def test_streams_of_those_without_a_key_count_for_all_only() -> None:
    quota = Quota(0, streams_max=3, streams_per_key_max=1)
    slots = [quota.open_stream(EVERYBODY) for _ in range(3)]
    assert stream_refusal(quota, EVERYBODY) == "max_sse_connections"
    slots.clear()
    gc.collect()
    assert quota.stream_count == 0
    free = Quota(0)
    assert len([free.open_stream(ANN) for _ in range(2000)]) == 2000


@pytest.mark.parametrize("fails", [RuntimeError("a bug"), NotFound("no such thing"), None])
def test_the_dispatcher_keeps_a_streams_slot_until_it_is_closed(fails: Exception | None) -> None:
    settings = Settings(api_keys=Secret("k"), max_inflight_per_key=1, max_sse_connections_per_key=1)
    context = Context(settings, RecordLimits(), SimClock(), 0)
    opened: list[StreamResponse] = []

    def handler(context: Context, request: Request, reply: Reply) -> None:
        if fails is not None:
            raise fails
        opened.append(streamed(Tape()))
        reply(opened[-1])

    table = Table([Route("GET", "/x", Scope.READ, handler, Operation("", "", ""), streams=True)])
    dispatch = Dispatcher(context, table, context.authenticator, context.quota)
    answers = Answers()

    def ask() -> int:
        dispatch(Request("GET", "/x", "", {"authorization": "Bearer k"}, b"", 0), answers.reply)
        return answers[-1]

    if fails is not None:
        assert [ask(), ask()] == [answers[0]] * 2 and 429 not in answers
        assert context.quota.stream_count == 0
        return
    assert [ask(), ask()] == [200, 429]
    assert (context.quota.stream_count, context.quota._inflight) == (1, {})
    opened[0].close()
    assert context.quota.stream_count == 0
    assert ask() == 200


def test_several_requests_take_as_many_slots_or_none() -> None:
    quota = Quota(3)
    release = quota.enter(ANN, 2)
    with pytest.raises(Throttled):
        quota.enter(ANN, 2)
    assert not full(quota)
    other = quota.enter(ANN)
    assert full(quota)
    release()
    release()
    quota.enter(ANN, 2)()
    other()
    assert quota._inflight == {}


def test_streams_that_take_over_from_each_other_share_a_slot() -> None:
    quota = Quota(0, streams_max=2, streams_per_key_max=1)
    first = quota.open_stream(ANN, "wid_1")
    second, third = quota.open_stream(ANN, "wid_1"), quota.open_stream(ANN, "wid_1")
    assert quota.stream_count == 1
    assert stream_refusal(quota) == "max_sse_connections_per_key"
    for _ in range(2):
        first()
        second()
    assert quota.stream_count == 1, "the third has it still"
    other = quota.open_stream(BOB, "wid_1")
    assert quota.stream_count == 2, "a name is the key's own"
    third()
    assert quota.stream_count == 1
    with pytest.raises(Throttled):
        quota.open_stream(BOB, "wid_2")
    other()
    assert (quota._streams, dict(quota._shared)) == ({}, {})
    quota.open_stream(ANN, "wid_1")()
    assert quota.stream_count == 0
