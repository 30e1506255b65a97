from __future__ import annotations

import pytest

from topics.sql.systemcolumns import NAMES
from topics.sql.words import SYSTEM_TABLES, ends


@pytest.mark.parametrize(
    ("text", "is_over"),
    [
        ("select 1;", True),
        ("select 1 ; -- so", True),
        ("select 1; /* so */\n", True),
        ("select 1", False),
        ("select ';", False),
        ("select ';'", False),
        ("select ';';", True),
        ("select 'it''s';", True),
        ("-- select 1;", False),
        ("/* select 1;", False),
        ("select 1; select 2", False),
        ('drop topic "a;', False),
        ("", False),
    ],
)
def test_a_statement_ends_at_a_semicolon_of_its_own(text: str, is_over: bool) -> None:
    assert ends(text) is is_over


def test_all_system_tables_are_offered() -> None:
    assert set(SYSTEM_TABLES) == {f"system.{name}" for name in NAMES}
