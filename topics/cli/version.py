"""`topics version`."""

from __future__ import annotations

import platform

from rich.text import Text

from topics import __version__
from topics.cli.screen import JsonFlag, Screen


def version(*, json: JsonFlag = False) -> None:
    """Print the version of topics and of the Python it runs on.

    For a bug report, for example; `topics --version` is the same:

        topics version
    """
    python = platform.python_version()
    fields = {"topics": __version__, "python": python, "system": platform.platform()}
    Screen(json).show(fields, lambda: Text(f"topics {__version__} (Python {python})"))
