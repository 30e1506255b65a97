"""The porter carries records as Arrow streams: it writes them as bodies, and reads pages of them."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec
import pyarrow as pa

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.actors.reader import read_request
from topics.testing.sim.actors.writer import TAGS, read_written
from topics.testing.sim.calls import Fields, Request
from topics.testing.sim.http import ResponseReader
from topics.testing.sim.plan import split

ARROW = "application/vnd.apache.arrow.stream"
PLACES = ("safe#0", "fast#0", "parts#1", "brief#0", "scratch#0")
TRIES_MAX = 6


def write_request(place: str, ids: list[int], tags: list[str], key: str) -> Request:
    topic, partition = split(place)
    table = pa.table({"data": [f'{{"id":{number}}}' for number in ids], "tag": tags})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    path = f"/v0/topics/{topic}?{urlencode({'partition': partition, 'idempotency_key': key})}"
    asked = {"ids": ids, "tags": tags, "key": key}
    body, headers = sink.getvalue().to_pybytes(), {"Content-Type": ARROW}
    return Request("write", place, "POST", path, body, asked, read_written, headers=headers)


def page_request(place: str, from_seq: int, limit: int) -> Request:
    """The same as JSON would be, with another body for the answer."""
    request = read_request(place, from_seq, limit)
    return Request(
        *(request.verb, request.place, request.method, request.path, request.body, request.asked, request.read),
        headers={"Accept": ARROW},
        decode=_page,
    )


def _page(answer: ResponseReader) -> Fields:
    """The fields that the answer would have as JSON."""
    fields: Fields = msgspec.json.decode(answer.headers[b"topics-page"])
    rows = pa.ipc.open_stream(bytes(answer.body)).read_all().to_pylist()
    fields["records"] = [
        {
            "$seq": row["seq"],
            "$ts": round(row["ts"].timestamp() * 1000),
            "$tag": row["tag"] or "",
            "data": msgspec.json.decode(row["data"]),
        }
        for row in rows
    ]
    return fields


class Porter(Actor):
    pause_ms = 130.0

    def routine(self) -> Routine:
        chance = self.chance
        self.world.notes.counts["by Arrow"] += 1
        place = chance.choice(PLACES)
        if chance.random() < 0.4:
            yield page_request(place, 0, chance.choice((5, 1000)))
            return
        ids = self.ids(chance.choice((1, 3, 8)))
        request = write_request(place, ids, [chance.choice(TAGS) for _ in ids], f"{self.name}-{ids[0]}")
        for _ in range(TRIES_MAX):
            reply = yield request
            if reply.ok:
                return
            yield self.retry_ms()
