from __future__ import annotations

import io
import shlex
from typing import Any

import pytest
from rich.console import Console

from topics.server.banner import show_banner
from topics.settings import Settings


def shown(key_count: int, width: int = 60, grpc_address: str = "", **others: Any) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width)
    settings = Settings(data_dir="/srv/topics", **others)
    url = "http://127.0.0.1:4000"
    show_banner(console, settings, url, key_count=key_count, topic_count=1, grpc_address=grpc_address)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_it_says_where_and_whose() -> None:
    text = shown(0, width=200)
    assert "http://127.0.0.1:4000 " in text and "http://127.0.0.1:4000/ " in text
    assert "/srv/topics (1 topic)" in text
    assert "off: everybody" in text
    assert "gRPC" not in text
    assert "on, 2 keys" in shown(2)


def test_it_says_where_grpc_is_and_that_users_sign_in() -> None:
    text = shown(0, width=200, grpc_address="127.0.0.1:4001", auth=True)
    assert "127.0.0.1:4001 " in text.partition("gRPC")[2]
    assert "on, users and managed keys" in text and "everybody" not in text


@pytest.mark.parametrize(("key_count", "headers"), [(0, 0), (3, 1)])
def test_the_lines_to_try_can_be_copied_from_a_narrow_terminal(key_count: int, headers: int) -> None:
    lines = [line for line in shown(key_count).splitlines() if line.startswith("curl ")]
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line)
        assert words[1].startswith("http://127.0.0.1:4000/v0/topics/orders")
        assert words.count("-H") == headers and words[-2] == "--json"
