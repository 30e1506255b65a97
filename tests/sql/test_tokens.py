from __future__ import annotations

import pytest

from topics.errors import InvalidSql
from topics.limits import SQL_WORDS_MAX
from topics.sql.tokens import tokenize


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind.name, token.text) for token in tokenize(text)]


def test_words_names_strings_numbers_parameters_and_signs() -> None:
    assert kinds("Create TOPIC \"a\"\"b\" `c``d` 'it''s' 1.5 ? $12 (a.b);") == [
        ("WORD", "Create"),
        ("WORD", "TOPIC"),
        ("NAME", 'a"b'),
        ("NAME", "c`d"),
        ("STRING", "it's"),
        ("NUMBER", "1.5"),
        ("PARAMETER", ""),
        ("PARAMETER", "12"),
        ("SIGN", "("),
        ("WORD", "a"),
        ("SIGN", "."),
        ("WORD", "b"),
        ("SIGN", ")"),
        ("SIGN", ";"),
    ]


def test_a_token_knows_where_it_stands() -> None:
    text = "a -- b\n /* c */ 'd' \"é\" ?"
    assert [text[token.start : token.end] for token in tokenize(text)] == ["a", "'d'", '"é"', "?"]


def test_two_words_are_two_tokens() -> None:
    assert [token.word for token in tokenize("partition by group by order by not null")] == (
        ["PARTITION", "BY", "GROUP", "BY", "ORDER", "BY", "NOT", "NULL"]
    )


def test_a_backslash_escapes_nothing() -> None:
    assert kinds(r"'a\' 'b'") == [("STRING", "a\\"), ("STRING", "b")]


@pytest.mark.parametrize(("text", "column"), [("a 'b", 3), ('a "b', 3), ("a `b", 3), ("a /* b", 3), ("'a' 'b", 5)])
def test_what_has_no_end_is_refused_where_it_begins(text: str, column: int) -> None:
    with pytest.raises(InvalidSql, match="has no end") as refused:
        tokenize(text)
    assert refused.value.detail["column"] == column


@pytest.mark.parametrize("text", ["select {# a", "select {# -- a", "select -- 'b\n /* ' */ \"c\" {# d"])
def test_what_cannot_be_read_for_another_reason_says_so(text: str) -> None:
    with pytest.raises(InvalidSql, match="this cannot be read as SQL") as refused:
        tokenize(text)
    assert (refused.value.detail["line"], refused.value.detail["column"]) == (1, 1)


def test_half_a_character_is_refused() -> None:
    with pytest.raises(InvalidSql, match="surrogate"):
        tokenize("'\ud800'")


def test_a_text_has_so_many_words_and_signs_and_no_more() -> None:
    for piece in ("a ", "(", "'it''s' ", '"a""b" ', "`a` ", "1.5e3 ", "? "):
        assert tokenize(piece * 100)
        with pytest.raises(InvalidSql, match="50000 words and signs at most; give values as parameters") as refused:
            tokenize(piece * (SQL_WORDS_MAX + 1))
        assert refused.value.detail["max_words"] == SQL_WORDS_MAX


@pytest.mark.parametrize("filler", ["it''s ", "a b ( ", "-- ; "])
def test_what_is_quoted_or_said_aside_is_one_however_long(filler: str) -> None:
    for beginning, end in (("'", "'"), ("/*", "*/ a"), ("--", "\n a")):
        assert len(tokenize(beginning + filler * (SQL_WORDS_MAX + 1) + end)) == 1
