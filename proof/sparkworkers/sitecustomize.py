"""What Spark's Python workers reach is saved while they run, since a signal ends them.

Each Python process of a run imports a module of this name by itself when it finds one, and `proof.coverage` lets it
find this one. Workers are what the daemon of Spark forks; for all other processes nothing changes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

DAEMON: Final = "pyspark.daemon"


def save_in_worker() -> None:
    """In a new worker: save after each task, and before an error is told, since who hears of it kills the worker."""
    daemon: Any = sys.modules["__main__"]
    if getattr(daemon.__spec__, "name", None) != DAEMON:
        return
    from pyspark import util

    daemon.worker = _saving_after(daemon.worker)
    util.handle_worker_exception = _saving_before(util.handle_worker_exception)


def _saving_after(run: Callable[..., Any]) -> Callable[..., Any]:
    def done(*given: Any) -> Any:
        try:
            return run(*given)
        finally:
            _save()

    return done


def _saving_before(tell: Callable[..., Any]) -> Callable[..., Any]:
    def told(*given: Any) -> Any:
        _save()
        return tell(*given)

    return told


def _save() -> None:
    from coverage import Coverage

    counting = Coverage.current()
    if counting is not None:
        counting.save()


os.register_at_fork(after_in_child=save_in_worker)
