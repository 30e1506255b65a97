"""Arrow pulls batches on threads that Python did not start, and that nobody traces: here they get whoever does."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from topics.sqlengine.tables import TopicTable


@pytest.fixture(autouse=True)
def traced_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever traces the threads of Python, if anything does, traces what makes batches as well."""
    batches = TopicTable._batches

    def traced(table: TopicTable, schema: Any) -> Iterator[Any]:
        made = batches(table, schema)
        while True:
            # Such a thread is a new one to Python each time it comes by.
            if sys.gettrace() is None:
                sys.settrace(threading.gettrace())
            batch = next(made, None)
            if batch is None:
                return
            yield batch

    monkeypatch.setattr(TopicTable, "_batches", traced)
