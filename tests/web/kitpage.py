"""A page with nothing in it but what a test makes out of the kit."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

from tests.web.rig import go

PLACE = "main .view"


def clear(page: Page) -> None:
    """A view with a heading and nothing else."""
    go(page, "/account")
    page.evaluate("""() => {
      const heading = document.createElement("h1");
      heading.textContent = "Kit";
      document.querySelector("main .view").replaceChildren(heading);
    }""")


def made(page: Page, module: str, body: str, argument: object = None) -> Any:
    """Run a piece of script that has all of a module as `kit`, and `put` to put elements into the view."""
    script = f"""async (argument) => {{
      const kit = await import("/web/kit/{module}.js");
      const {{ h }} = await import("/web/kit/dom.js");
      const put = (...parts) => document.querySelector("{PLACE}").append(...parts);
      {body}
    }}"""
    return page.evaluate(script, argument)
