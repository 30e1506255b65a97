"""The executor of an engine: loaded when first asked for, and closed before the engine is.

sqlglot and Arrow are optional and take a while to load, so they are loaded with the first statement. DuckDB is loaded
by query processes only.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from topics.core.records import RecordLimits
from topics.engine.host import Host
from topics.errors import NotInstalled
from topics.settings import Settings

if TYPE_CHECKING:
    from topics.sqlengine.executor import Executor

INSTALL = "pip install 'topics[sql]'"
_NEEDED = ("duckdb", "pyarrow", "sqlglot")


class Runner:
    def __init__(self, settings: Settings, limits: RecordLimits) -> None:
        self._settings = settings
        self._limits = limits
        self._executor: Executor | None = None
        self._loading = asyncio.Lock()

    async def executor(self, host: Host) -> Executor:
        """The one executor of an engine; `NotInstalled` when the extra is missing."""
        async with self._loading:
            if self._executor is None:
                missing = next((name for name in _NEEDED if find_spec(name) is None), None)
                if missing is not None:
                    message = f"SQL needs {missing}, which is not installed where the engine runs: {INSTALL}"
                    raise NotInstalled(message, install=INSTALL)
                await asyncio.to_thread(import_module, "topics.sqlengine.executor")
                from topics.sqlengine.executor import Executor

                self._executor = Executor(host, self._settings, self._limits)
            return self._executor

    async def close(self) -> None:
        """End what runs. Another engine may be given to `executor` afterwards."""
        executor, self._executor = self._executor, None
        if executor is not None:
            await executor.close()
