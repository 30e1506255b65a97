"""Loggers are the process's: a test that configures them leaves them as they were."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from topics.server.logs import LOGGERS


@contextmanager
def loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    try:
        yield
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
            logger.handlers[:], logger.propagate = handlers, propagate
            logger.setLevel(level)
