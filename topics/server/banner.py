"""What a person sees when the server is ready: where it is, whose it is, and what to try next."""

from __future__ import annotations

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from topics.settings import Settings

KEY = "-H 'authorization: Bearer KEY'"


def show_banner(
    console: Console, settings: Settings, url: str, *, key_count: int, topic_count: int, grpc_address: str = ""
) -> None:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    facts.add_row("address", Text(url, style="bold cyan"))
    facts.add_row("dashboard", Text(f"{url}/", style="bold cyan"))
    if grpc_address:
        facts.add_row("gRPC", Text(grpc_address, style="bold cyan"))
    facts.add_row("data", Text(f"{settings.data_dir} ({_counted(topic_count, 'topic')})"))
    facts.add_row("auth", _auth(key_count, settings.auth))
    facts.add_row("reference", Text(f"{url}/v0/docs"))
    console.print(Panel(facts, title="topics", title_align="left", border_style="cyan", expand=False))
    # Outside the frame and never broken into lines, so that they can be copied.
    lines = "\n".join(("Try, in another terminal:", "", *_curls(url, key_count), ""))
    console.print(lines, soft_wrap=True, highlight=False, markup=False)
    console.print("Ctrl-C stops the server; what was acked is kept.", style="dim")


def _auth(key_count: int, accounts: bool) -> Text:
    if key_count:
        return Text(f"on, {_counted(key_count, 'key')}", style="green")
    if accounts:
        return Text("on, users and managed keys", style="green")
    return Text("off: everybody who reaches the address may do everything (TOPICS_AUTH=1)", style="yellow")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _curls(url: str, key_count: int) -> list[str]:
    key = f" {KEY}" if key_count else ""
    return [
        f"""curl {url}/v0/topics/orders{key} --json '{{"records": [{{"data": {{"sku": "A1"}}}}]}}'""",
        f"""curl {url}/v0/topics/orders/diff{key} --json '{{"from_seq": 0}}'""",
    ]
