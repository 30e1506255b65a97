"""The kit in a real browser: elements, figures, calls, and the small parts that views are made of."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.served import Served
from tests.web.kitpage import made
from tests.web.rig import axe


def test_text_is_text_and_what_would_run_is_refused(kit: Page) -> None:
    evil = "<img src=x onerror=alert(1)>"
    made(kit, "dom", "put(kit.h('p', { class: 'evil', title: argument, data: { x: argument } }, argument))", evil)
    assert kit.locator(".evil").inner_text() == evil and kit.locator(".evil img").count() == 0
    refused = """
      const tries = [
        () => h("a", { href: "javascript:alert(1)" }), () => h("a", { href: " JavaScript:alert(1)" }),
        () => h("a", { href: "//elsewhere.example" }), () => h("a", { href: "data:text/html,x" }),
        () => h("script"), () => h("iframe"), () => h("p", { onclick: "x" }), () => h("p", { style: "x" }),
        () => kit.svg("foreignObject"), () => h("img", { src: "vbscript:x" }),
      ];
      return tries.map((attempt) => { try { attempt(); return "made"; } catch (error) { return "refused"; } });
    """
    assert set(made(kit, "dom", refused)) == {"refused"}
    fine = ["/a", "#b", "?c", "https://d.example", "mailto:e@f"]
    addresses = "return argument.map((href) => h('a', { href }).getAttribute('href'))"
    assert made(kit, "dom", addresses, fine) == fine


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("count(1234567)", "1,234,567"),
        ("count(null)", "–"),
        ("counted(1, 'topic')", "1 topic"),
        ("rate(0.25)", "0.25/s"),
        ("rate(1234.5)", "1,235/s"),
        ("bytes(1536)", "1.5 KiB"),
        ("bytes(12)", "12 B"),
        ("duration(0.42)", "0.42 ms"),
        ("duration(90000)", "1 min 30 s"),
        ("duration(3 * 86400000)", "3 d"),
        ("ago(1000, 61000)", "1 min ago"),
        ("ago(5000, 1000)", "in 4 s"),
        ("ago(0)", "never"),
        ("when(1767323045000)", "2026-01-02 03:04:05"),
        ("percent(0.123)", "12.3%"),
        ("inUnit(2048, 'bytes_per_s')", "2 KiB/s"),
    ],
)
def test_figures_are_shown_as_people_read_them(kit: Page, call: str, shown: str) -> None:
    assert made(kit, "format", f"return kit.{call}") == shown


def test_durations_and_sizes_mean_what_was_typed(kit: Page) -> None:
    texts = ["90d", "1h 30m", "500 ms", "250", "1.5s", "", "x", "5 5", "3 parsecs"]
    read = made(
        kit,
        "units",
        "return argument.map((text) => { const n = kit.parseDuration(text); return isNaN(n) ? null : n; })",
        texts,
    )
    assert read == [7_776_000_000, 5_400_000, 500, 250, 1500, None, None, None, None]
    sizes = made(kit, "units", "return ['64 MiB', '1kb', '10', '2 GiB'].map(kit.parseBytes)")
    assert sizes == [64 << 20, 1000, 10, 2 << 30]
    back = "return [5400000, 500, 0].map(kit.showDuration).concat([67108864, 1500].map(kit.showBytes))"
    assert made(kit, "units", back) == ["1h 30m", "500ms", "0s", "64 MiB", "1500"]


def test_json_is_folded_cut_and_copied(kit: Page) -> None:
    value = {"a": {"b": {"deep": 1}}, "long": "x" * 2000, "list": list(range(150)), "<b>": None}
    made(kit, "json", "put(kit.jsonView(argument))", value)
    axe(kit)
    view = kit.locator(".json")
    expect(view).to_contain_text('"<b>": null')
    deep = view.get_by_text('"deep"')
    expect(deep).not_to_be_visible()
    view.locator("summary", has_text="1 fields").last.click()
    expect(deep).to_be_visible()
    view.get_by_role("button", name="more characters").click()
    view.get_by_role("button", name="50 more").click()
    expect(view).to_contain_text("149")
    kit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    view.get_by_role("button", name="Copy the JSON").click()
    expect(kit.get_by_role("status").filter(has_text="Copied.")).to_be_visible()
    assert kit.evaluate("navigator.clipboard.readText().then(JSON.parse)") == value


def test_tabs_move_by_arrow_and_make_their_panels_late(kit: Page) -> None:
    body = """
      window.built = [];
      const content = (name) => () => { window.built.push(name); return h("p", null, `This is ${name}.`); };
      const tab = (name, label) => ({ name, label, content: content(name) });
      put(kit.tabs([tab("one", "One"), tab("two", "Two")]));
    """
    made(kit, "state", body)
    axe(kit)
    kit.get_by_role("tab", name="One").focus()
    assert kit.evaluate("window.built") == ["one"]
    kit.keyboard.press("ArrowRight")
    expect(kit.get_by_role("tab", name="Two")).to_be_focused()
    expect(kit.get_by_role("tabpanel")).to_have_text("This is two.")


def test_work_can_be_stopped_in_the_middle(kit: Page) -> None:
    body = """
      window.bar = kit.progress({ label: "Deleting", total: 3000 });
      put(window.bar);
      window.bar.to(1500);
    """
    made(kit, "progress", body)
    axe(kit)
    expect(kit.get_by_role("status").filter(has_text="Deleting")).to_contain_text("1,500 of 3,000")
    kit.get_by_role("button", name="Stop").click()
    assert kit.evaluate("[window.bar.stopped, window.bar.signal.aborted]") == [True, True]
    kit.evaluate("window.bar.end('1,500 deleted.')")
    expect(kit.get_by_role("button", name="Stop")).to_have_count(0)


def test_an_empty_place_teaches_and_a_failure_says_why(kit: Page) -> None:
    body = """
      const { empty } = await import("/web/kit/empty.js");
      put(empty({ title: "No topics", text: "Make one:", commands: ["topics write orders 1"] }));
      const error = { status: 403, message: "no", detail: { scope: ["admin"] } };
      put(kit.failed(error, () => { window.again = true; }), kit.badge("fine", "ok"));
    """
    made(kit, "state", body)
    axe(kit)
    expect(kit.get_by_role("alert")).to_contain_text("This takes the scope admin.")
    kit.get_by_role("button", name="Try again").click()
    assert kit.evaluate("window.again")
    expect(kit.get_by_role("button", name="Copy the command")).to_be_visible()


def test_work_is_repeated_never_twice_at_a_time_and_ends_with_its_signal(kit: Page) -> None:
    body = """
      const leaving = new AbortController();
      let running = 0, most = 0, calls = 0;
      const poll = kit.every(5, leaving.signal, async () => {
        calls += 1; running += 1; most = Math.max(most, running);
        await new Promise((resolve) => setTimeout(resolve, 10));
        running -= 1;
        if (calls === 2) throw new Error("once");
      }, { failed: (error) => { window.heard = error.message; } });
      await poll;
      poll.now(); poll.now();
      while (calls < 5) await new Promise((resolve) => setTimeout(resolve, 5));
      leaving.abort();
      const after = calls;
      await new Promise((resolve) => setTimeout(resolve, 60));
      return [most, calls - after, window.heard];
    """
    assert made(kit, "live", body) == [1, 0, "once"]


def test_records_are_followed_and_the_topic_that_goes_is_told(kit: Page, server: Served) -> None:
    with server.connect() as caller:
        caller.ask("POST", "/v0/topics/kit-follow", {"records": [{"data": 1, "tag": "t"}, {"data": 2}]})
        body = """
          window.seen = [];
          window.leaving = new AbortController();
          kit.follow({ "kit-follow": { from_seq: 0 } }, window.leaving.signal, {
            record: (record, topic) => window.seen.push([topic, record.$seq, record.data]),
            caughtUp: (topic) => window.seen.push(["caught up", topic]),
            deleted: (topic) => window.seen.push(["deleted", topic]),
          });
        """
        made(kit, "live", body)
        kit.wait_for_function("() => window.seen.length === 3")
        caller.ask("POST", "/v0/topics/kit-follow", {"records": [{"data": {"n": 3}}]})
        kit.wait_for_function("() => window.seen.length === 4")
        caller.ask("DELETE", "/v0/topics/kit-follow")
        kit.wait_for_function("() => window.seen.length === 5")
    topic = "kit-follow"
    told = [[topic, 1, 1], [topic, 2, 2], ["caught up", topic], [topic, 3, {"n": 3}], ["deleted", topic]]
    assert kit.evaluate("window.seen") == told


def test_what_the_server_refuses_is_an_error_with_its_words(kit: Page) -> None:
    body = """
      try { await kit.api.get(kit.at`/v0/topics/${argument}`); } catch (error) {
        const { status, code, message, mayPass } = error;
        return [error instanceof kit.ApiError, status, code, message.includes(argument), mayPass];
      }
    """
    assert made(kit, "api", body, "no such ?topic") == [True, 400, "invalid_request", True, False]
    assert made(kit, "api", body, "none") == [True, 404, "topic_not_found", True, False]
    query = "return kit.withQuery('/a', { b: 1, c: null, d: '', e: 'f g' })"
    assert made(kit, "api", query) == "/a?b=1&e=f+g"
