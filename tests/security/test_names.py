"""Names that no path shows: in bodies, queries and lists. A key for other names gets at none of them."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

from tests.client.rig import on_loop
from tests.security.askers import FOREIGN_KEY, NAME, OWN_PREFIX, STATIC_KEYS, with_key
from tests.security.counting import Count
from tests.security.pipelined import Asked, ask_all
from tests.server.accountrig import ADMIN_KEY, accounts_served
from topics.server.principal import ALL_SCOPES, NO_SCOPE
from topics.server.table import ROUTES

HEAP = f"{OWN_PREFIX}heap"
STAGE = f"{OWN_PREFIX}stage"
PIPELINE = f"{OWN_PREFIX}pipe"
LEASE = {"topic": HEAP, "message_id": "0" * 26, "lease_token": "l1.0.1"}
MESSAGE = {"topic": HEAP, "payload": "MQ==", "priority": 1}
STREAM = f"APPEND INTO DELTA.'x' FROM STREAM {NAME}"

NAMED: dict[str, object] = {
    "POST /v1/heaps": {"topic": f"{OWN_PREFIX}new"},
    "POST /v1/enqueue": MESSAGE,
    "POST /v1/enqueue:batch": {"messages": [MESSAGE], "requests": [MESSAGE]},
    "POST /v1/enqueue/batch": {"messages": [MESSAGE], "requests": [MESSAGE]},
    "POST /v1/pop": {"topic": HEAP},
    "POST /v1/ack": LEASE,
    "POST /v1/nack": LEASE,
    "POST /v1/extend": LEASE | {"extension": 1},
    f"GET /v1/peek?topic={HEAP}": None,
    f"GET /v1/stats?topic={HEAP}": None,
    f"GET /v0/producers?topic={NAME}": None,
    f"DELETE /v0/producers?topic={NAME}&producer_id=p": None,
    "POST /v0/sql": {"sql": f"DESCRIBE TOPIC {NAME}"},
    "POST /v0/watch": {"topics": {NAME: {}}},
    "POST /v0/watch/token": {"topics": [NAME]},
    f"PUT /v0/pipelines/{PIPELINE}2": {"definition": STREAM},
    f"GET /v0/pipelines/{PIPELINE}": None,
    f"DELETE /v0/pipelines/{PIPELINE}": None,
    f"POST /v0/pipelines/{PIPELINE}/pause": {},
    f"POST /v0/pipelines/{PIPELINE}/resume": {},
    f"POST /v0/pipelines/{PIPELINE}/report": {"runner": "r", "state": "running"},
    f"GET /v0/pipelines/{PIPELINE}/logs": None,
}
"""Where a name is in the body or the query, or in a path that the table does not look at: a request about ours."""

OF_TENANTS: dict[str, object] = {
    "POST /v0/publish": {"stages": [STAGE], "producer_id": "p", "epoch": 1},
    "POST /v0/abort": {"stages": [STAGE]},
    "DELETE /v0/producers?producer_id=p": None,
}
"""About names that each tenant has for itself: ours are not there for others."""

NAMELESS = {
    *("POST /v1/snapshot", "GET /v0/watch/{wid}", "GET /v0/ws", "GET /v0/settings", "GET /v0/backup"),
    *("GET /v1/auth/me", "POST /v1/auth/password", "GET /v1/auth/sessions", "DELETE /v1/auth/sessions/{session}"),
    *("POST /v1/keys", "GET /v1/keys", "GET /v1/keys/{key}", "DELETE /v1/keys/{key}", "GET /v1/audit"),
    *("POST /v1/users", "GET /v1/users", "GET /v1/users/{user}", "PATCH /v1/users/{user}", "DELETE /v1/users/{user}"),
    "GET /v1/audit/verify",
}
"""About no names, or of those whom a key for some names may not ask at all."""


def listed() -> list[str]:
    """Routes that show everything there is, of which a key sees its own."""
    found = []
    for route in ROUTES:
        title = f"{route.method} {route.path}"
        if (route.scope is not NO_SCOPE or route.keyed) and route.name_param is None and title not in NAMELESS:
            if "{" not in route.path and title not in {each.partition("?")[0] for each in (*NAMED, *OF_TENANTS)}:
                assert route.method == "GET", f"{title} names nothing in its path: say in this file where it does"
                found.append(title)
    return found


def asked(title: str, body: object, key: str) -> Asked:
    method, _, path = title.partition(" ")
    content = b"" if body is None else json.dumps(body).encode()
    return Asked(method, quote(path, safe="/?=:&"), with_key("", key, scopes=ALL_SCOPES).headers, content)


@on_loop
async def test_a_key_for_other_names_gets_at_nothing_of_ours(tmp_path: Path, record_property: Count) -> None:
    async with accounts_served(tmp_path, api_keys=STATIC_KEYS) as served:
        served.api.key = ADMIN_KEY
        await served.api.write(NAME, 1, config={"type": "queue", "dead_letter": f"{OWN_PREFIX}dead"})
        for path, body in (
            ("POST /v1/heaps", {"topic": HEAP}),
            ("POST /v1/enqueue", MESSAGE),
            (f"POST /v0/topics/{NAME}/stage", {"stage": STAGE, "records": [{"data": 1}]}),
            (f"PUT /v0/routers/{OWN_PREFIX}router", {"source": f"{OWN_PREFIX}a", "dest": f"{OWN_PREFIX}b"}),
            (f"PUT /v0/tables/{OWN_PREFIX}table", {"format": "csv", "location": "x"}),
            (f"PUT /v0/pipelines/{PIPELINE}", {"definition": STREAM}),
            (f"POST /v0/topics/{OWN_PREFIX}a", {"records": [{"data": 1}]}),
            (f"POST /v0/topics/{OWN_PREFIX}a/groups/{OWN_PREFIX}g/consume", {"consumer": "c"}),
        ):
            method, _, where = path.partition(" ")
            answer = await served.api.call(method, where, body)
            assert answer.status < 300, (path, answer.body)
        url = served.server.url
        refused = await ask_all(url, [asked(title, body, FOREIGN_KEY) for title, body in NAMED.items()])
        assert {title: told.status for title, told in zip(NAMED, refused, strict=True) if told.status != 403} == {}
        of_tenants = OF_TENANTS.items()
        published, aborted, forgot = await ask_all(url, [asked(title, body, FOREIGN_KEY) for title, body in of_tenants])
        assert (published.status, aborted.status) == (404, 200) and b'"stages":[]' in aborted.body
        assert forgot.status == 200 and b'"forgotten":false' in forgot.body
        assert OWN_PREFIX not in published.message.replace(STAGE, "")
        shown = await ask_all(url, [asked(title, None, FOREIGN_KEY) for title in listed()])
        for title, told in zip(listed(), shown, strict=True):
            assert OWN_PREFIX.encode() not in told.body, f"{title} shows it"
        seen = await ask_all(url, [asked(title, None, ADMIN_KEY) for title in listed()])
        telling = [title for title, told in zip(listed(), seen, strict=True) if OWN_PREFIX.encode() in told.body]
        assert {"GET /v0/topics", "GET /v0/routers", "GET /v0/tables", "GET /v0/pipelines", "GET /v1/heaps"} <= {
            *telling
        }
        # Those who may are let in: what was refused was the name and nothing else.
        allowed = await ask_all(url, [asked(title, body, ADMIN_KEY) for title, body in NAMED.items()])
        assert {title for title, told in zip(NAMED, allowed, strict=True) if told.status in (401, 403)} == set()
        own = await ask_all(url, [asked(title, body, ADMIN_KEY) for title, body in of_tenants])
        assert [told.status for told in own] == [200, 200, 200], "the stage was there all the time"
        assert b'"forgotten":true' in own[2].body, "the producer was there all the time"
    record_property("hidden_names", len(NAMED))
    record_property("lists", len(listed()))
