"""Asking the server beside the page: what a test prepares, and what it checks afterwards."""

from __future__ import annotations

from typing import Any

from tests.e2e.served import Served

THROTTLED = 429


def ask(server: Served, method: str, path: str, body: object = None) -> Any:
    """The answer to a request that is not refused; a server that is busy with others is asked again."""
    with server.connect() as caller:
        status, answer = caller.ask(method, path, body)
        while status == THROTTLED:
            status, answer = caller.ask(method, path, body)
    assert status < 300, (method, path, status, answer)
    return answer


def write(server: Served, topic: str, *datas: object, **options: object) -> None:
    ask(server, "POST", f"/v0/topics/{topic}", {"records": [{"data": data} for data in datas], **options})


def enqueue(server: Served, heap: str, *priorities: int, **fields: object) -> list[str]:
    """Ids of messages whose payloads are their priorities."""
    messages = [{"topic": heap, "payload_json": {"p": p}, "priority": p, **fields} for p in priorities]
    answer = ask(server, "POST", "/v1/enqueue:batch", {"messages": messages})
    return [each["message_id"] for each in answer["responses"]]


def dead_messages(server: Served, heap: str, count: int, reason: str = "no luck") -> None:
    """Messages of a heap that have become dead letters; the heap lets them fail once."""
    enqueue(server, heap, *range(count))
    popped = ask(server, "POST", "/v1/pop", {"topic": heap, "max": count})["items"]
    leases = [{"lease_token": item["lease_token"], "message_id": item["message_id"]} for item in popped]
    assert ask(server, "POST", "/v1/nack", {"topic": heap, "leases": leases, "reason": reason})["nacked"] == count
    while ask(server, "GET", f"/v1/heaps/{heap}")["stats"]["dlq_messages"] < count:
        pass


def dead_jobs(server: Served, queue: str, dead: str, count: int) -> None:
    """Jobs of a new queue that have become dead letters, tagged `t0`, `t1`, `t2` in turn."""
    ask(server, "PUT", f"/v0/topics/{queue}", {"type": "queue", "max_deliveries": 1, "dead_letter": dead})
    records = [{"data": {"n": n}, "tag": f"t{n % 3}"} for n in range(count)]
    ask(server, "POST", f"/v0/topics/{queue}", {"records": records})
    claimed = ask(server, "POST", f"/v0/topics/{queue}/claim", {"node": "w", "max": count})["claimed"]
    ask(server, "POST", f"/v0/topics/{queue}/nack", {"node": "w", "seqs": [job["$seq"] for job in claimed]})
    while ask(server, "GET", f"/v0/topics/{queue}")["queue"]["dead_lettered"] < count:
        ask(server, "POST", f"/v0/topics/{queue}/claim", {"node": "w", "max": count})
