"""`topics work`: a worker. A function of yours does the jobs of a queue, several at a time."""

from __future__ import annotations

import asyncio
import importlib
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from os.path import abspath
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from topics.cli.durations import milliseconds
from topics.cli.eventloop import Terminated
from topics.cli.names import queue_names
from topics.cli.screen import JsonFlag, Screen, counted
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client, Worked
from topics.client.worker import Handler
from topics.errors import InvalidRequest

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def work(
    function: Annotated[str, Parameter(help="What does a job, as module:function.")],
    /,
    *,
    queue: Annotated[str, Parameter(name=["--queue", "-q"], help="Where the jobs are.", completer=queue_names)],
    concurrency: Annotated[int, Parameter(name=["--concurrency", "-c"], help="Jobs at a time.")] = 1,
    lease: Annotated[
        str | None, Parameter(help="For how long, like 5min; as the queue says.", show_default=False)
    ] = None,
    retry: Annotated[str, Parameter(help="How long a job that failed waits, doubled with each try.")] = "1s",
    retry_max: Annotated[str, Parameter(help="And how long at most.")] = "5min",
    shutdown: Annotated[str, Parameter(help="How long jobs may take when the worker is stopped.")] = "30s",
    until_empty: Annotated[bool, Parameter(negative="", show_default=False, help="End when nothing is to do.")] = False,
    node: Annotated[str | None, Parameter(help="The worker's name; made up.", show_default=False)] = None,
    partition: Annotated[
        int | None, Parameter(help="Only its jobs; those of all partitions.", show_default=False)
    ] = None,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Have a function do the jobs of a queue.

    It is called with each job: `job.data` is what was put. When it returns the job is acked, when it raises the job is
    given back and tried again later. Its lease is extended meanwhile. A coroutine function runs on the event loop, a
    plain one in a thread. The module is looked for here first.

    Ctrl-C and SIGTERM stop it: no more jobs are taken, and those under way are finished. A second one gives them back.
    A server that goes away is waited for. For example:

        topics work tasks:handle --queue jobs --concurrency 8 --until-empty
    """
    screen = Screen(json)
    handler = _find(function)
    options: dict[str, Any] = {
        "concurrency": concurrency,
        "lease_ms": None if lease is None else milliseconds("lease", lease),
        "retry_ms": milliseconds("retry", retry),
        "retry_ms_max": milliseconds("retry-max", retry_max),
        "shutdown_ms": milliseconds("shutdown", shutdown),
        "until_empty": until_empty,
        "partition": partition,
    }

    async def run(client: Client) -> Worked | signal.Signals:
        one = client.queue(queue, node=node)
        stop = asyncio.Event()
        with _signals(stop, screen) as told:
            screen.note(f"{one.node} works on {queue}, {counted(concurrency, 'job')} at a time")
            try:
                return await one.run(handler, stop=stop, **options)
            except asyncio.CancelledError:
                if len(told) < 2:  # pragma: no cover - SIGTERM in the instant before its handler is replaced
                    raise
                return told[-1]

    with _log_to(screen):
        worked = target.run(run)
    if worked is signal.SIGINT:
        raise KeyboardInterrupt
    if not isinstance(worked, Worked):
        raise Terminated
    said = f"{counted(worked.done, 'job')} done, {worked.failed:,} failed, {worked.lost:,} lost"
    fields = {"queue": queue, "done": worked.done, "failed": worked.failed, "lost": worked.lost}
    screen.show(fields, lambda: Text(said, style="green"))


def _find(name: str) -> Handler:
    """The function that `module:function` names."""
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise InvalidRequest(f'"{name}" names no function: expected module:function, like tasks:handle')
    sys.path.insert(0, abspath("."))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        where = f'there is no module "{error.name}" here or among what is installed'
        raise InvalidRequest(f"{where}; start it where the module is") from None
    for part in path.split("."):
        if not hasattr(found, part):
            near = get_close_matches(part, dir(found), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidRequest(f'"{module_name}" has no {part}{hint}')
        found = getattr(found, part)
    if not callable(found):
        raise InvalidRequest(f'"{name}" is a {type(found).__name__}, not a function')
    handler: Handler = found
    return handler


@contextmanager
def _signals(stop: asyncio.Event, screen: Screen) -> Iterator[list[signal.Signals]]:
    """The first signal stops the worker, the second one ends it; those that came."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    told: list[signal.Signals] = []

    def tell(number: signal.Signals) -> None:
        told.append(number)
        if stop.is_set():
            task.cancel()
            return
        stop.set()
        screen.note("stopping: jobs under way are finished; once more gives them back", "yellow")

    for number in SIGNALS:
        loop.add_signal_handler(number, tell, number)
    try:
        yield told
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


class _Handler(logging.Handler):
    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        for line in self.format(record).splitlines():
            self._screen.note(line, "red" if record.levelno >= logging.ERROR else "yellow")


@contextmanager
def _log_to(screen: Screen) -> Iterator[None]:
    """What the worker reports goes to stderr, unless the module has set up logging for itself."""
    logger = logging.getLogger("topics.worker")
    handler = _Handler(screen)
    if logger.hasHandlers():
        yield
        return
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
