"""A client in each of its forms: with the engine in this process, and over HTTP to a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import topics
from topics import testing

FORMS = ("embedded", "remote")

each_form = pytest.mark.parametrize("form", FORMS)


@asynccontextmanager
async def opened(form: str, directory: Path, **settings: int) -> AsyncIterator[topics.Client]:
    if form == "embedded":
        async with topics.open(directory, **settings) as client:
            yield client
    else:
        async with testing.server(directory, **settings) as server, server.client() as client:
            yield client
