"""`topics serve`: until the HTTP server is here, it says how to use the engine in process."""

from __future__ import annotations

from rich.console import Console, Group
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from topics.settings import load

SNIPPET = """\
import topics

with topics.sync.open({directory!r}) as client:
    orders = client.topic("orders")
    orders.write({{"sku": "A1"}}, tag="order-1")
    for record in orders.diff().records:
        print(record.seq, record.tag, record.data)
"""


def serve() -> None:
    """Start the server on the data directory.

    The HTTP server is the next step of this release; today the same engine runs inside a Python program. For example:

        TOPICS_DATA_DIR=/srv/topics topics serve
    """
    settings = load()
    console = Console()
    panel = Panel(
        Group(
            Text(f"The HTTP server (http://{settings.host}:{settings.port}) comes with the next release step."),
            Text("The engine works today, in your own process:"),
        ),
        title="topics",
        border_style="cyan",
    )
    console.print(panel)
    # Outside the panel, so that it can be copied without the frame.
    console.print(Syntax(SNIPPET.format(directory=settings.data_dir), "python", background_color="default"))
