"""Queues in the dashboard: what waits, who holds what, taken back, put, and brought back from the dead."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.served import Served
from tests.web.calls import ask
from tests.web.rig import axe, go, shot


def queue(server: Served, name: str, jobs: int, **config: object) -> None:
    ask(server, "PUT", f"/v0/topics/{name}", {"type": "queue", "lease_ms": 3_600_000, **config})
    records = [{"data": {"job": number}, "tag": f"t{number % 2}"} for number in range(jobs)]
    ask(server, "POST", f"/v0/topics/{name}", {"records": records})


def claim(server: Served, name: str, node: str, count: int) -> list[dict[str, Any]]:
    claimed: list[dict[str, Any]] = ask(server, "POST", f"/v0/topics/{name}/claim", {"node": node, "max": count})[
        "claimed"
    ]
    assert len(claimed) == count
    return claimed


def kill(server: Served, name: str, count: int) -> None:
    """Let jobs fail as often as they may."""
    jobs = claim(server, name, "clumsy", count)
    ask(server, "POST", f"/v0/topics/{name}/nack", {"node": "clumsy", "seqs": [job["$seq"] for job in jobs]})
    # They leave when somebody asks for jobs.
    last = claim(server, name, "clumsy", 1)[0]
    named = {"node": "clumsy", "seqs": [last["$seq"]], "delivered": False}
    ask(server, "POST", f"/v0/topics/{name}/nack", named)
    while counts(server, name)[1:] != (0, count):
        pass


def counts(server: Served, name: str) -> tuple[int, int, int]:
    found = ask(server, "GET", f"/v0/topics/{name}?touch=false")["queue"]
    return found["ready"], found["in_flight"], found["dead_lettered"]


def test_all_queues_with_their_jobs(page: Page, server: Served) -> None:
    queue(server, "all.mail", 12, max_deliveries=1, dead_letter="all.dead")
    kill(server, "all.mail", 2)
    claim(server, "all.mail", "w1", 3)
    ask(server, "POST", "/v0/topics/all.mail", {"records": [{"data": 1}], "delay_ms": 3_600_000})
    ask(server, "PUT", "/v0/topics/all.parts", {"type": "queue", "partitions": 3})
    for partition in range(3):
        ask(server, "POST", "/v0/topics/all.parts", {"records": [{"data": 1}] * 2, "partition": partition})
    ask(server, "PUT", "/v0/topics/all.log", {})
    go(page, "/queues")
    page.get_by_role("searchbox", name="Search queues by name").fill("all.")
    rows = page.get_by_role("row")
    expect(rows).to_have_count(3)
    cells = rows.filter(has_text="all.mail").get_by_role("cell")
    expect(cells).to_contain_text(["all.mail", "7", "3", "1", "2", "ago"])
    parts = rows.filter(has_text="all.parts")
    expect(parts).to_contain_text("3 partitions")
    expect(parts.get_by_role("cell").nth(1)).to_have_text("6")
    ask(server, "POST", "/v0/topics/all.mail", {"records": [{"data": 1}] * 4})
    expect(cells.nth(1)).to_have_text("11")
    axe(page)
    shot(page, "queues-all")
    page.get_by_role("searchbox").fill("nothing-like-this")
    expect(page.get_by_text("No queue has nothing-like-this in its name.")).to_be_visible()
    page.get_by_role("searchbox").fill("all.mail")
    page.get_by_role("link", name="all.mail").click()
    expect(page.locator("h1")).to_have_text("all.mail")


def test_who_holds_what_and_a_job_is_taken_back(page: Page, server: Served) -> None:
    queue(server, "held.mail", 10)
    claim(server, "held.mail", "worker-a", 3)
    claim(server, "held.mail", "<img src=x onerror=canary()>", 2)
    go(page, "/queues/held.mail")
    rows = page.get_by_role("table", name="Leases").locator("tbody tr")
    expect(rows).to_have_count(5)
    expect(rows.first).to_contain_text("worker-a")
    expect(rows.first).to_contain_text("in 59 min")
    expect(rows.last).to_contain_text("<img src=x onerror=canary()>")
    stats = page.locator(".stats .stat")
    expect(stats.filter(has_text="Ready").first).to_contain_text("5")
    expect(stats.filter(has_text="Oldest ready")).to_contain_text("job 6")
    rows.first.get_by_role("button", name="Release job 1").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 job of held.mail, now with worker-a, can be claimed by others at once.")
    axe(page)
    with page.expect_request("**/nack") as sent:
        dialog.get_by_role("button", name="Release").click()
    expect(page.get_by_text("1 job released.")).to_be_visible()
    named = sent.value.post_data_json
    assert (named["node"], named["seqs"], len(named["lease_ids"])) == ("worker-a", [1], 1), (
        "that lease and no later one"
    )
    expect(rows).to_have_count(4)
    assert counts(server, "held.mail") == (6, 4, 0)
    for row in (0, 3):
        rows.nth(row).get_by_role("checkbox").check()
    page.get_by_role("button", name="Release chosen…").click()
    dialog.get_by_role("button", name="Release").click()
    expect(page.get_by_text("2 jobs released.")).to_be_visible()
    assert counts(server, "held.mail") == (8, 2, 0)
    page.get_by_role("tab", name="Delayed").click()
    expect(page.get_by_text("No job waits for its time")).to_be_visible()
    page.get_by_role("tab", name="Put a job").click()
    page.get_by_label("Data", exact=True).fill('{"later": true}')
    page.get_by_label("Not before").fill("2h")
    page.get_by_role("button", name="Put", exact=True).click()
    expect(page.get_by_text("Written as seq 11.")).to_be_visible()
    page.get_by_role("tab", name="Delayed").click()
    delayed = page.get_by_role("table", name="Delayed jobs").locator("tbody tr")
    expect(delayed).to_contain_text(["in 1 h"])


def test_many_leases_come_in_pages(page: Page, server: Served) -> None:
    queue(server, "pages.mail", 250)
    claim(server, "pages.mail", "w", 230)
    go(page, "/queues/pages.mail")
    rows = page.get_by_role("table", name="Leases").locator("tbody tr")
    expect(rows).to_have_count(100)
    page.get_by_role("button", name="More").click()
    expect(rows.first).to_contain_text("101")
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(30)
    expect(page.get_by_role("button", name="More")).to_be_disabled()
    page.get_by_role("button", name="Back").click()
    expect(rows.first).to_contain_text("101")


def test_dead_letters_are_counted_and_brought_back(page: Page, server: Served) -> None:
    queue(server, "dead.mail", 41, max_deliveries=1, dead_letter="dead.letters")
    kill(server, "dead.mail", 40)
    assert counts(server, "dead.mail") == (1, 0, 40)
    go(page, "/queues/dead.mail")
    page.get_by_role("tab", name="Dead letters").click()
    page.get_by_label("Tag").fill("t1")
    page.get_by_role("button", name="Count").click()
    expect(page.locator(".preview")).to_have_text("20 dead letters would come back.")
    page.get_by_label("Reason").fill("no such reason")
    page.get_by_role("button", name="Count").click()
    expect(page.locator(".preview")).to_have_text("No dead letter fits.")
    assert counts(server, "dead.mail")[0] == 1
    page.get_by_label("Reason").fill("max_deliveries")
    page.get_by_label("Jobs at most").fill("15")
    page.get_by_role("button", name="Bring them back…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Bring 15 dead letters back?")
    dialog.get_by_role("button", name="Bring them back").click()
    expect(page.locator(".progress")).to_contain_text("15 are back.")
    assert counts(server, "dead.mail")[0] == 16
    page.get_by_label("Tag").fill("")
    page.get_by_label("Jobs at most").fill("")
    page.get_by_label("Jobs a second at most").fill("5")
    page.get_by_role("button", name="Bring them back…").click()
    dialog.get_by_role("button", name="Bring them back").click()
    expect(page.locator(".progress")).to_contain_text("of 25")
    shot(page, "queue-redrive")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".progress")).to_contain_text("; stopped.")
    assert 16 < counts(server, "dead.mail")[0] < 41


def test_a_queue_without_dead_letters_teaches_how_to_have_some(page: Page, server: Served) -> None:
    queue(server, "never.mail", 1)
    ask(server, "PUT", "/v0/topics/never.log", {})
    go(page, "/queues/never.mail")
    page.get_by_role("tab", name="Dead letters").click()
    expect(page.locator(".command")).to_contain_text("--max-deliveries 5 --dead-letter never.mail.dead")
    go(page, "/queues/never.log")
    expect(page.locator(".failed")).to_contain_text("only a topic created with type")
