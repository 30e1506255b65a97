"""Spark's Python workers save what they reached when a task is done, since a signal ends them.

Each Python process of a run imports a module of this name by itself when it finds one, and `proof.coverage` lets it
find this one. Only the daemon of Spark forks workers, so for all others nothing changes.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

DAEMON: Final = "pyspark.daemon"


def save_after_tasks() -> None:
    """In a new worker: its loop calls `worker` once for each task."""
    daemon: Any = sys.modules["__main__"]
    if getattr(daemon.__spec__, "name", None) != DAEMON:
        return
    run = daemon.worker

    def worker(*given: Any) -> Any:
        from coverage import Coverage

        try:
            return run(*given)
        finally:
            counting = Coverage.current()
            if counting is not None:
                counting.save()

    daemon.worker = worker


os.register_at_fork(after_in_child=save_after_tasks)
