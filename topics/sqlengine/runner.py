"""The executor of an engine: loaded when first asked for, and closed before the engine is.

DuckDB and sqlglot are optional and take a while to load, so that where nobody asks for SQL there is neither.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from topics.core.records import RecordLimits
from topics.engine.host import Host
from topics.errors import NotInstalled
from topics.settings import Settings

if TYPE_CHECKING:
    from topics.sqlengine.executor import Executor

INSTALL = "pip install 'topics[sql]'"
_NEEDED = {"duckdb", "pyarrow", "sqlglot"}


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
                try:
                    await asyncio.to_thread(import_module, "topics.sqlengine.executor")
                except ModuleNotFoundError as error:
                    if error.name not in _NEEDED:
                        raise
                    message = f"SQL needs {error.name}, which is not installed where the engine runs: {INSTALL}"
                    raise NotInstalled(message, install=INSTALL) from error
                from topics.sqlengine.executor import Executor

                self._executor = Executor(host, self._settings, self._limits)
            return self._executor

    async def close(self) -> None:
        """End what runs. Another engine may be given to `executor` afterwards."""
        executor, self._executor = self._executor, None
        if executor is not None:
            await executor.close()
