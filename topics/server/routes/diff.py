"""Reading records behind a cursor, with a long-poll that cannot miss a wake-up.

The records of the answer are the stored bytes as they are. A long-poll waits for anything behind the place where its
empty page ended, so what came between the read and the wait ends the wait at once. It ends with the client's
sending as well: somebody who only reads on cannot be told from somebody who is gone, and gets what there is.

As an Arrow stream the answer is records only. What the JSON answer says beside them is the header `Topics-Page`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from topics.core.cut import Render, Shape, cut
from topics.core.heap import Heap
from topics.core.names import check_topic
from topics.core.read import Span
from topics.engine.engine import Engine
from topics.engine.host import Host
from topics.limits import ARROW_RECORDS_MAX, SECOND_MS
from topics.model import Page
from topics.server.answers import NS_PER_MS, later
from topics.server.arrow import ARROW_STREAM, or_arrow, wants_arrow, with_codecs
from topics.server.context import Context
from topics.server.intake.order import SAFE
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import TOPIC, answer, body
from topics.wire.diff import DiffRequest, decode_diff

_ANSWER = (
    b'{"topic":"%b",%b%b%b%b"next_from_seq":%d,"head_seq":%d,"earliest_seq":%d,"caught_up":%b,"tombstone":%b,'
    b'"lag":%d,"epoch":%d,"performance":{"server_total_ms":%.3f,"records_scanned":%d}}'
)


@dataclass(frozen=True, slots=True)
class _Format:
    """How the records of an answer are written, and how many there may be; 0 is what the settings say."""

    render: Render
    limit_max: int = 0


_JSON = _Format(cut)


def diff(context: Context, request: Request, reply: Reply) -> None:
    if wants_arrow(request):
        with_codecs(_diff_arrow, context, request, reply)
    else:
        _diff(context, request, reply, _JSON)


def _diff_arrow(context: Context, request: Request, reply: Reply) -> None:
    from topics.wire.arrow import arrow_jobs, arrow_messages, arrow_page

    engine = context.ready().engine

    def render(spans: Sequence[Span], shape: Shape) -> bytes:
        # A page is rendered when its log has been looked at, so the topic and the partition are there.
        topic = engine.machine.topic(request.params["topic"])
        log = engine.machine.log(topic, wanted.partition)
        if log.queue is None:
            return arrow_page(spans, shape)
        if isinstance(log.queue, Heap):
            log.queue.look(log, topic.config, engine.now_ms())
            return arrow_messages(log, log.queue, spans, shape)
        log.queue.leases.expire(engine.now_ms())
        return arrow_jobs(log.queue.leases, spans, shape)

    wanted = decode_diff(request.body)
    _diff(context, request, reply, _Format(render, ARROW_RECORDS_MAX))


def _diff(context: Context, request: Request, reply: Reply, format: _Format) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    wanted = decode_diff(request.body)
    page = _read(host.engine, topic, wanted, wanted.from_seq, format)
    if not wanted.wait_ms or not _is_idle(page):
        reply(_answer(context, host, request, page, page.scanned, format))
        return
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    request.on_gone = partial(_end, gone)
    later(context, request, reply, _wait(context, host, request, wanted, page, gone, format))


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _wait(
    context: Context,
    host: Host,
    request: Request,
    wanted: DiffRequest,
    page: Page,
    gone: asyncio.Future[None],
    format: _Format,
) -> Response:
    """Read until there is something to tell, the time is over, or the client or the server wants to stop."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wanted.wait_ms / SECOND_MS
    machine = host.engine.machine
    scanned = page.scanned
    waiting = True
    while waiting and _is_idle(page):
        log = machine.log(machine.topic(page.topic), wanted.partition)
        waiting = await host.wait_visible(log, page.next_from_seq, deadline - loop.time(), gone)
        page = _read(host.engine, page.topic, wanted, page.next_from_seq, format)
        scanned += page.scanned
    return _answer(context, host, request, page, scanned, format)


def _is_idle(page: Page) -> bool:
    return not page.count and page.tombstone is None and page.caught_up


def _read(engine: Engine, topic: str, wanted: DiffRequest, from_seq: int, format: _Format) -> Page:
    return engine.read(
        topic,
        from_seq,
        from_ts=wanted.from_ts,
        partition=wanted.partition,
        limit=wanted.limit,
        byte_budget=wanted.byte_budget,
        nodes=wanted.nodes,
        match=wanted.match,
        shape=wanted.shape,
        render=format.render,
        limit_max=format.limit_max,
    )


def _answer(context: Context, host: Host, request: Request, page: Page, scanned: int, format: _Format) -> Response:
    topic = host.engine.machine.topics.get(page.topic)
    several = topic is not None and topic.config.partitions > 1
    text = _ANSWER % (
        page.topic.encode(),
        b'"partition":%d,' % page.partition if several else b"",
        *((b'"records":[', page.body, b"],") if format is _JSON else (b"", b"", b"")),
        page.next_from_seq,
        page.head_seq,
        page.earliest_seq,
        b"true" if page.caught_up else b"false",
        b"null" if page.tombstone is None else msgspec.json.encode(page.tombstone),
        page.lag,
        page.epoch,
        (context.clock.ticks_ns() - request.received_ns) / NS_PER_MS,
        scanned,
    )
    if format is _JSON:
        return Response(200, text)
    return Response(200, page.body, ARROW_STREAM.encode(), ((b"Topics-Page", text),))


ROUTES = (
    Route(
        "POST",
        "/v0/topics/{topic}/diff",
        Scope.READ,
        diff,
        Operation(
            "Read records behind a cursor",
            "Returns the records after `from_seq`, in order. Pass `next_from_seq` back as `from_seq` to go on; "
            "`caught_up` says that there is nothing more for now. What was lost to a cap, a TTL or a crash before the "
            "reader came is told as a `tombstone`. With `wait_ms` an empty read waits for records. With `Accept: "
            "application/vnd.apache.arrow.stream` the records are an Arrow stream, up to 65536 of them, with the "
            "columns `seq`, `ts`, `node`, `tag`, `meta` and `data` (JSON text), of a queue or a heap `state` (`ready`, "
            "`leased`, `delayed`) and `attempts`, and of a heap `priority`; the rest of the answer is then JSON in the "
            "header `Topics-Page`.",
            "records",
            parameters=(TOPIC,),
            request_body=body("DiffRequest", required=False),
            responses={
                "200": or_arrow(answer("Page", "The records, and where to go on.")),
                "406": answer("Error", "Only an Arrow stream is accepted, and the server has no `pyarrow`."),
            },
        ),
        name_param="topic",
        order=SAFE,
        reads="topic",
    ),
)
