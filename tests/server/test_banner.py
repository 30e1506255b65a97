from __future__ import annotations

import io
import shlex

import pytest
from rich.console import Console

from topics.server.banner import show_banner
from topics.settings import Settings


def shown(key_count: int, width: int = 60) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width)
    settings = Settings(data_dir="/srv/topics")
    show_banner(console, settings, "http://127.0.0.1:4000", key_count=key_count, topic_count=1)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_it_says_where_and_whose() -> None:
    text = shown(0, width=200)
    assert "http://127.0.0.1:4000 " in text and "http://127.0.0.1:4000/ " in text
    assert "/srv/topics (1 topic)" in text
    assert "off: everybody" in text
    assert "on, 2 keys" in shown(2)


@pytest.mark.parametrize(("key_count", "headers"), [(0, 0), (3, 1)])
def test_the_lines_to_try_can_be_copied_from_a_narrow_terminal(key_count: int, headers: int) -> None:
    lines = [line for line in shown(key_count).splitlines() if line.startswith("curl ")]
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line)
        assert words[1].startswith("http://127.0.0.1:4000/v0/topics/orders")
        assert words.count("-H") == headers and words[-2] == "--json"
