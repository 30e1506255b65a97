"""Runs a module as `python -m` would, and tells a file once a second how many asyncio tasks there are.

python -m tests.e2e.counted FILE PYTHON -m MODULE ARGUMENT …
"""

from __future__ import annotations

import asyncio
import os
import runpy
import sys
import threading
import time
from pathlib import Path

EVERY_S = 1.0


def _tasks() -> int:
    """Those that are not done, of all loops. asyncio tells of one loop only, and only from within."""
    known = getattr(asyncio.tasks, "_all_tasks", None) or getattr(asyncio.tasks, "_scheduled_tasks", ())
    return sum(not task.done() for task in list(known))


def _count(path: Path) -> None:
    draft = path.with_suffix(".new")
    while True:
        draft.write_text(str(_tasks()))
        os.replace(draft, path)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    file, _, _, module, *rest = sys.argv[1:]
    threading.Thread(target=_count, args=(Path(file),), daemon=True).start()
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
