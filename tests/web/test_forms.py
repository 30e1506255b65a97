"""Forms and dialogs in a real browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.web.kitpage import made
from tests.web.rig import axe


def test_a_form_says_beside_each_field_what_is_wrong(kit: Page) -> None:
    body = """
      const { ApiError } = await import("/web/kit/api.js");
      const kinds = ["log", { value: "queue", label: "Queue" }];
      window.form = kit.form({
        submit: "Make",
        cancel: () => { window.left = true; },
        fields: [
          { name: "name", label: "Name", required: true, hint: "Any." },
          { name: "life", label: "Life", kind: "duration", min: 1000 },
          { name: "size", label: "Size", kind: "bytes", value: 1048576 },
          "More",
          { name: "many", label: "Many", kind: "number", max: 5 },
          { name: "kind", label: "Kind", kind: "select", options: kinds, value: "queue" },
          { name: "open", label: "Open", kind: "flag", value: true },
          { name: "data", label: "Data", kind: "json" },
          { name: "tags", label: "Tags", kind: "tags" },
        ],
        onSubmit: async (values) => {
          if (values.name === "taken") throw new ApiError(409, "name_taken", "It is taken.", { field: "config.name" });
          if (values.name === "down") throw new ApiError(503, "not_ready", "Not ready.");
          window.sent = values;
        },
      });
      put(window.form);
    """
    made(kit, "form", body)
    axe(kit)
    make = kit.get_by_role("button", name="Make")
    kit.get_by_label("Life").fill("soon")
    kit.get_by_label("Many").fill("9")
    kit.get_by_label("Data").fill("{")
    make.click()
    wrong = kit.locator(".wrong:not(:empty)")
    expect(wrong).to_have_count(4)
    texts = wrong.all_inner_texts()
    assert texts[:3] == ["This is needed.", "Expected a duration like 30s, 15m or 7d.", "Expected at most 5."]
    assert texts[3].startswith("This is not JSON") and kit.evaluate("window.sent") is None
    expect(kit.get_by_label("Name")).to_be_focused()
    expect(kit.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    kit.get_by_label("Life").fill("1500 ms")
    kit.get_by_label("Many").fill("")
    kit.get_by_label("Data").fill('{"a": 1}')
    kit.get_by_label("Tags").fill("one, two")
    kit.get_by_label("Tags").press("Enter")
    kit.get_by_role("button", name="Remove one").click()
    for name, said in (("taken", "It is taken."), ("down", "Not ready.")):
        kit.get_by_label("Name").fill(name)
        make.click()
        expect(kit.get_by_text(said)).to_be_visible()
    expect(kit.locator(".problem")).to_have_text("Not ready.")
    kit.get_by_label("Name").fill(" fine ")
    make.click()
    kit.wait_for_function("() => window.sent")
    assert kit.evaluate("window.sent") == {
        "name": "fine",
        "life": 1500,
        "size": 1 << 20,
        "many": None,
        "kind": "queue",
        "open": True,
        "data": {"a": 1},
        "tags": ["two"],
    }
    kit.get_by_role("button", name="Cancel").click()
    assert kit.evaluate("window.left")


def test_a_dangerous_deed_asks_for_the_name_and_gives_the_focus_back(kit: Page) -> None:
    body = """
      const about = { title: "Delete orders?", body: "12 records go." };
      const question = { ...about, word: "orders", action: "Delete", danger: true };
      const ask = () => kit.confirm(question).then((said) => { window.said = said; });
      put(h("button", { type: "button", on: { click: ask } }, "Ask"));
    """
    made(kit, "dialog", body)
    ask = kit.get_by_role("button", name="Ask")
    dialog = kit.get_by_role("dialog", name="Delete orders?")
    ask.click()
    expect(dialog).to_contain_text("12 records go.")
    axe(kit)
    delete = dialog.get_by_role("button", name="Delete")
    expect(delete).to_be_disabled()
    kit.keyboard.type("order")
    kit.keyboard.press("Enter")
    expect(delete).to_be_disabled()
    kit.keyboard.type("s")
    kit.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    kit.wait_for_function("() => window.said === true")
    ask.click()
    kit.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    kit.wait_for_function("() => window.said === false")
    expect(ask).to_be_focused()


def test_a_dialog_stays_while_its_action_fails(kit: Page) -> None:
    body = """
      let tries = 0;
      const run = async () => { tries += 1; if (tries === 1) throw new Error("Not yet."); return "done"; };
      const shown = kit.dialog({ title: "Work", body: "To do.", actions: [{ label: "Do", kind: "primary", run }] });
      shown.then((value) => { window.got = value; });
    """
    made(kit, "dialog", body)
    do = kit.get_by_role("dialog").get_by_role("button", name="Do")
    do.click()
    expect(kit.get_by_role("dialog")).to_contain_text("Not yet.")
    do.click()
    expect(kit.get_by_role("dialog")).to_have_count(0)
    kit.wait_for_function("() => window.got === 'done'")
