"""What pages of other sites try in a real browser with a server that asks nobody for a key, and what they may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from tests.e2e.browser import FLAGS, LONG_MS, PROGRAM, pages
from tests.e2e.served import Served, served
from tests.web.rig import Lab, go, visit

REBOUND = "evil.example"
_ATTACKS = """async (url) => {
  const tried = (work) => work.then((answer) => answer.type + answer.status, (error) => error.name);
  const sent = { method: "POST", mode: "no-cors" };
  const opened = (target, made) => new Promise((resolve) => {
    made.onopen = () => resolve("open");
    made.onerror = () => resolve("refused");
  });
  const form = document.createElement("form");
  Object.assign(form, { method: "POST", action: url + "/v0/topics/victim/redrive", target: "nobody" });
  document.body.append(form);
  form.submit();
  const image = new Image();
  const seen = new Promise((resolve) => { image.onload = image.onerror = () => resolve("asked"); });
  image.src = url + "/v0/topics/victim/work?node=page&max=1";
  navigator.sendBeacon(url + "/v0/topics/victim/dead_letters/delete");
  return {
    snapshot: await tried(fetch(url + "/v1/snapshot", sent)),
    discard: await tried(fetch(url + "/v0/topics/victim/dead_letters/delete", sent)),
    text: await tried(fetch(url + "/v0/topics/victim", { ...sent, body: '{"records":[{"data":666}]}' })),
    json: await tried(fetch(url + "/v0/topics/victim", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: '{"records":[{"data":666}]}' })),
    image: await seen,
    work: await opened(url, new EventSource(url + "/v0/topics/victim/work?node=page&max=1")),
    socket: await opened(url, new WebSocket(url.replace("http", "ws") + "/v0/ws")),
  };
}"""
_REBOUND = """async () => {
  const asked = (path, options) => fetch(path, options).then((answer) => answer.status);
  const headers = { "Content-Type": "application/json" };
  return {
    read: await asked("/v0/topics"),
    key: await asked("/v1/keys", { method: "POST", headers, body: '{"name":"stolen","scopes":["admin"]}' }),
    write: await asked("/v0/topics/victim", { method: "POST", headers, body: '{"records":[{"data":666}]}' }),
  };
}"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "index.html").write_text("<!doctype html><title>elsewhere</title><iframe name=nobody></iframe>")
    with pages(tmp_path) as origin:
        yield origin


def prepare(server: Served) -> dict[str, Any]:
    """Make a queue with a job that is ready and a dead letter, and return what it looks like."""
    with server.connect() as caller:
        for topic in ("victim", "victim.dead"):
            caller.ask("DELETE", f"/v0/topics/{topic}")
        caller.ask("PUT", "/v0/topics/victim", {"type": "queue", "max_deliveries": 1, "dead_letter": "victim.dead"})
        caller.ask("POST", "/v0/topics/victim", {"records": [{"data": 1}, {"data": 2}]})
        caller.ask("POST", "/v0/topics/victim/claim", {"node": "a", "max": 1})
        caller.ask("POST", "/v0/topics/victim/nack", {"node": "a", "seqs": [1]})
        caller.ask("POST", "/v0/topics/victim/claim", {"node": "a", "max": 1})
        caller.ask("POST", "/v0/topics/victim/nack", {"node": "a", "seqs": [2]})
    while (found := looks(server))["queue"]["dead_lettered"] < 1:
        """The move of the dead letter is under way."""
    return found


def looks(server: Served) -> dict[str, Any]:
    with server.connect() as caller:
        state = caller.ask("GET", "/v0/topics/victim")[1]
        dead = caller.ask("GET", "/v0/topics/victim.dead")[1]
    return {"head": state["head_seq"], "count": state["count"], "queue": state["queue"], "dead": dead.get("count", 0)}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_page_of_another_site_changes_nothing(lab: Lab, server: Served, elsewhere: str, host: str) -> None:
    """From another port of the same host, which is the same site, and from another site."""
    before = prepare(server)
    url = server.url.replace("127.0.0.1", host)
    context = lab.browser.new_context()
    try:
        page = context.new_page()
        page.goto(elsewhere)
        found = page.evaluate(_ATTACKS, url)
        assert found == {
            "snapshot": "opaque0",
            "discard": "opaque0",
            "text": "opaque0",
            "json": "TypeError",
            "image": "asked",
            "work": "refused",
            "socket": "refused",
        }
    finally:
        context.close()
    assert before["dead"] and looks(server) == before


def test_rebound_page_reads_and_changes_nothing(lab: Lab, server: Served) -> None:
    port = urlsplit(server.url).port
    flags = [*FLAGS, f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"]
    rebound: Browser = lab.browser.browser_type.launch(executable_path=PROGRAM, headless=True, args=flags)
    try:
        page = rebound.new_page()
        page.set_default_timeout(LONG_MS)
        answer = page.goto(f"http://{REBOUND}:{port}/v0/topics")
        assert answer is not None and answer.status == 403 and "TOPICS_ALLOWED_HOSTS" in answer.text()
        assert page.evaluate(_REBOUND) == {"read": 403, "key": 403, "write": 403}
    finally:
        rebound.close()


def test_dashboard_works_under_every_loopback_name(lab: Lab, server: Served) -> None:
    for host in ("127.0.0.1", "localhost", "x.localhost"):
        with visit(lab.browser, server.url.replace("127.0.0.1", host)) as page:
            go(page, "/topics")
            wrote = """() => fetch("/v0/topics/by-page", { method: "POST",
              headers: { "Content-Type": "application/json" }, body: '{"records":[{"data":1}]}' }).then((a) => a.ok)"""
            assert page.evaluate(wrote)


def test_page_of_a_listed_origin_works(lab: Lab, tmp_path: Path, elsewhere: str) -> None:
    variables = {"TOPICS_CORS_ORIGINS": elsewhere}
    with served(tmp_path / "data", variables=variables) as server:
        prepare(server)
        context = lab.browser.new_context()
        try:
            page = context.new_page()
            page.goto(elsewhere)
            found = page.evaluate(_ATTACKS, server.url)
        finally:
            context.close()
        assert (found["json"], found["work"], found["socket"]) == ("cors200", "open", "open")
