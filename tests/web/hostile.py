"""Text that would run as script wherever it is taken for HTML, and a server with it in all that a user can choose."""

from __future__ import annotations

from typing import Final

from topics import LogLine, PipelineReport, RunState, sync

EVIL: Final = "<img src=x onerror=canary()>"
TEXTS: Final = (
    EVIL,
    '"><script>canary()</script>',
    "javascript:canary()",
    "</script><script>canary()</script>",
    "<svg/onload=canary()>",
    "'\"`--></textarea></title><svg onload=canary()>",
    "{{canary()}}${canary()}<%= canary() %>",
    '{"__proto__":{"html":"<img src=x onerror=canary()>"}}',
    "\u202e\u2066\u200b<a href=javascript:canary()>\uff1cscript\uff1e\u0301",
)
"""Tags, attributes, addresses, breakouts of scripts and templates, JSON, drawings, letters that hide what follows."""
ADDRESS: Final = "javascript:canary()//"

# Names have an alphabet of their own; what is left in it are addresses, and words that every object has.
TOPIC: Final = "javascript:canary"
COPY: Final = "constructor"
QUEUE: Final = "toString"
DEAD: Final = "hasOwnProperty"
HEAP: Final = "valueOf"
GROUP: Final = "isPrototypeOf"
TABLE: Final = "constructor.table"
PIPELINE: Final = "propertyIsEnumerable"
EMAIL: Final = "{{constructor}}=onload=canary//@example.org"

ADDRESSES: Final = {
    "/topics": "/topics?search=canary",
    "/topics/:topic": f"/topics/{TOPIC}",
    "/groups/:topic/:group": f"/groups/{TOPIC}/{GROUP}",
    "/queues/:topic": f"/queues/{QUEUE}",
    "/heaps/:topic": f"/heaps/{HEAP}",
    "/dead/:topic": f"/dead/{HEAP}",
    "/pipelines/:name": f"/pipelines/{PIPELINE}",
}
"""Where a view is that shows hostile text, unless at its path."""
LONG_MS: Final = 600_000

CANARY: Final = """
    window.canaried = [];
    window.canary = () => window.canaried.push(location.pathname);
    document.addEventListener("securitypolicyviolation", (event) => window.canaried.push(event.violatedDirective));
"""
"""Before any script of a page: what a hostile text would call, and what the page's policy would stop."""

FOUND: Final = """() => ({
    ran: window.canaried,
    made: [...document.querySelectorAll("img, script:not([src^='/web/']), iframe, object, embed, base, form[action]")]
        .map((element) => element.outerHTML),
    handlers: [...document.querySelectorAll("*")]
        .filter((element) => element.getAttributeNames().some((name) => name.startsWith("on")))
        .map((element) => element.outerHTML),
    addresses: [...document.querySelectorAll("[href], [src], [action], [formaction]")]
        .flatMap((element) => ["href", "src", "action", "formaction"].map((name) => element.getAttribute(name)))
        .filter((address) => /^[\\s\\u0000-\\u001f]*(javascript|vbscript|data:text)/i.test(address ?? "")),
})"""
"""All that a hostile text could have become; of a page that shows it as text, nothing."""
NOTHING: Final = {"ran": [], "made": [], "handlers": [], "addresses": []}


def fill(client: sync.Client) -> None:
    """Put hostile text into every place that takes one."""
    _fill_topic(client)
    _fill_queue(client)
    _fill_heap(client)
    _fill_catalog(client)
    client.keys.create(EVIL, ["read"])
    client.users.invite(EMAIL)


def _fill_topic(client: sync.Client) -> None:
    topic = client.topic(TOPIC)
    topic.write_many({"data": text, "tag": text, "node": text, "meta": {text: text}} for text in TEXTS)
    topic.write({text: [text, {text: text}] for text in TEXTS}, tag=EVIL)
    client.router(f"{TOPIC}->{COPY}").put(TOPIC, COPY, filter=EVIL, backfill=True)
    topic.group(GROUP, consumer=EVIL).take(2, visibility_ms=LONG_MS)
    topic.report_archive("constructor", 1, location=ADDRESS)


def _fill_queue(client: sync.Client) -> None:
    queue = client.queue(QUEUE, node=EVIL)
    queue.create(max_deliveries=1, dead_letter=DEAD, lease_ms=LONG_MS)
    queue.put_many({"data": text, "tag": text, "meta": {text: text}} for text in TEXTS)
    queue.nack([job.seq for job in queue.claim(3)])
    queue.claim(2)


def _fill_heap(client: sync.Client) -> None:
    heap = client.heap(HEAP, consumer=EVIL, producer=EVIL)
    heap.create(max_retries=0)
    heap.enqueue_many({"payload": text, "priority": number, "meta": {text: text}} for number, text in enumerate(TEXTS))
    heap.nack([message.lease_token for message in heap.take(2)], reason=EVIL)
    heap.take(1, visibility_ms=LONG_MS)


def _fill_catalog(client: sync.Client) -> None:
    client.table(TABLE).put("delta", ADDRESS, key=["id"])
    client.topic("plain").create()
    pipeline = client.pipeline(PIPELINE)
    pipeline.put(f"INSERT INTO TOPIC {COPY} SELECT '{EVIL}' FROM STREAM plain")
    report = PipelineReport(
        runner=EVIL,
        state=RunState.RETRYING,
        position=EVIL,
        last_error="\n".join(TEXTS),
        last_error_ts=1,
        spark_ui=ADDRESS,
    )
    pipeline.report(report, [LogLine(number, "error", text) for number, text in enumerate(TEXTS, 1)])
