from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgresrig import directory_of_programs, postgres


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """One PostgreSQL for all tests of this process; its address."""
    if directory_of_programs() is None:
        pytest.skip("no PostgreSQL; `make test` installs it where it may")
    with postgres() as address:
        yield address


@pytest.fixture
def database(server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of its own for each test."""
    import psycopg

    name = f"test_{abs(hash(request.node.nodeid))}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
