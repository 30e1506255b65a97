"""`topics version`."""

from __future__ import annotations

import platform
from importlib import metadata

from rich.console import Console


def version() -> None:
    """Print the version of topics and of the Python it runs on, for example for a bug report."""
    console = Console(highlight=False)
    console.print(f"topics {metadata.version('topics')} (Python {platform.python_version()})")
