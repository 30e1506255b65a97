"""How many files the process may have open: a connection is one, and so are the files of the WAL.

Systems hand out a low limit that a process may raise by itself up to a hard one, so the server does. What is left then
is for the operator to raise, and the log says how.

A share of the files is the engine's alone. If connections could take the last one, whoever reaches the address could
keep the WAL from opening its next file, and so stop every write until a restart.
"""

from __future__ import annotations

import logging
import resource

from topics.server.logs import fields

FILES_MAX = 2**20
"""More than any server here needs; some systems name no hard limit, and take no soft one beyond this."""
FILES_LOW = 12_288
"""Below it ten thousand connections and the files of the engine do not fit."""

RESERVED_SHARE = 8
RESERVED_MIN = 256
"""One file in so many is the engine's, and no fewer than that; half of them where there are hardly any."""

log = logging.getLogger(__name__)


def raise_file_limit() -> int:
    """Raise the limit as far as it goes; what it is then. A low one is told."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _bounded(soft)
    if limit < _bounded(hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (_bounded(hard), hard))
            limit = _bounded(hard)
        except (OSError, ValueError) as error:
            log.warning("the limit of open files cannot be raised", extra=fields(open_files_max=limit, error=error))
    if limit < FILES_LOW:
        todo = f"raise the hard limit to {FILES_LOW} or more: `ulimit -Hn`, LimitNOFILE= of systemd, --ulimit of docker"
        log.warning(
            "few connections fit: the limit of open files is low", extra=fields(open_files_max=limit, todo=todo)
        )
    return limit


def reserved_files() -> int:
    """How many of the files that may be open connections must leave to the engine."""
    limit = _bounded(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return min(max(limit // RESERVED_SHARE, RESERVED_MIN), limit // 2)


def connections_max() -> int:
    """How many connections may be open at once."""
    return _bounded(resource.getrlimit(resource.RLIMIT_NOFILE)[0]) - reserved_files()


def _bounded(limit: int) -> int:
    return FILES_MAX if limit == resource.RLIM_INFINITY else min(limit, FILES_MAX)
