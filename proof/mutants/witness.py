"""A plugin of pytest that refuses to run unless it is the copy of the tree that is imported."""

from __future__ import annotations

from os import environ
from pathlib import Path

import pytest

import topics

ROOT_VARIABLE = "PROOF_ROOT"


def pytest_configure() -> None:
    expected, found = Path(environ[ROOT_VARIABLE]), Path(topics.__file__).parent.parent
    if found != expected:
        raise pytest.UsageError(f"topics comes from {found} and not from the copy in {expected}")
