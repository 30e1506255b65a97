from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from topics import errors
from topics.cli.exitcode import Exit, exit_of

EXPECTED = {
    Exit.USAGE: {
        "InvalidRequest BatchTooLarge RecordTooLarge InvalidSetting PayloadTooLarge DirectoryLocked",
    },
    Exit.NOT_FOUND: {"NotFound TopicNotFound StageNotFound"},
    Exit.REFUSED: {
        "Unauthorized Forbidden TopicFull Conflict TopicExistsIncompatible TopicNotEmpty ProducerFenced StageConflict"
    },
    Exit.UNREACHABLE: {
        "Unavailable NotReady ShuttingDown Throttled RequestTimeout ConnectionFailed TimedOut BackupInterrupted"
    },
    Exit.FAILED: {"Internal Damaged NotUnderstood LogStopped Deposed"},
}
CASES = [(name, code) for code, lists in EXPECTED.items() for names in lists for name in names.split()]


def every_error() -> Iterator[type[errors.TopicsError]]:
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.TopicsError):
            yield kind


@pytest.mark.parametrize(("name", "code"), CASES)
def test_an_error_ends_with_its_code(name: str, code: Exit) -> None:
    assert exit_of(getattr(errors, name)("x")) is code


def test_every_error_has_one() -> None:
    assert all(exit_of(kind("x")) is not Exit.OK for kind in every_error())


def test_the_numbers_are_for_ever() -> None:
    assert {code.name: code.value for code in Exit} == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "NOT_FOUND": 3,
        "REFUSED": 4,
        "UNREACHABLE": 5,
        "INTERRUPTED": 130,
        "PIPE_CLOSED": 141,
        "TERMINATED": 143,
    }
    assert all(code.meaning.endswith(".") for code in Exit)
