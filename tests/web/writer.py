"""Load: somebody who writes to a topic all the time, while a page is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from tests.e2e.served import Served

BATCH = 20
PAUSE_S = 0.02
"""The server and the browser share two cores with it."""


@contextmanager
def writing(server: Served, topic: str, **config: object) -> Iterator[None]:
    """Writes of a batch each, one after the other, from before the block begins until it ends."""
    stop, begun = Event(), Event()

    def write() -> None:
        number = 0
        with server.connect() as caller:
            while not stop.is_set():
                records = [{"data": {"n": number + at}, "tag": f"t{at % 4}"} for at in range(BATCH)]
                status, answer = caller.ask("POST", f"/v0/topics/{topic}", {"records": records, "config": config})
                assert status in (200, 201), answer
                number += BATCH
                begun.set()
                stop.wait(PAUSE_S)

    thread = Thread(target=write, name=f"writer of {topic}", daemon=True)
    thread.start()
    try:
        assert begun.wait(60), "nothing was written"
        yield
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
