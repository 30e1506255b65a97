from __future__ import annotations

from reference.markdown import first_sentence, prose, table


def test_a_table_has_no_empty_columns() -> None:
    assert (
        table(("a", "b", "c"), [("1", "", "x|y"), ("2", "", "")]) == "| a | c |\n|---|---|\n| 1 | x\\|y |\n| 2 |  |\n\n"
    )
    assert table(("a",), []) == ""


def test_what_is_indented_in_a_docstring_is_code() -> None:
    told = prose("First.\n\n    with it:\n        go()\n\n    after()\n\nSee docs/FORMAT.md.")
    assert told == "First.\n\n```python\nwith it:\n    go()\n\nafter()\n```\n\nSee [FORMAT](FORMAT.md).\n\n"


def test_a_sentence_is_one_line() -> None:
    assert first_sentence("One\n    and two.\n\n    Three.") == "One and two."
