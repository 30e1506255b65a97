"""A PostgreSQL server for the tests of this directory, started when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgresrig import directory_of_programs, postgres


@pytest.fixture(scope="session")
def pipeline_postgres() -> Iterator[str]:
    if directory_of_programs() is None:
        pytest.skip("no PostgreSQL (Debian: apt install postgresql)")
    with postgres() as location:
        yield location
