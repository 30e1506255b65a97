from __future__ import annotations

from bench.document import Part, document, part_text, parts_of


def test_a_document_is_read_back_as_it_was_written() -> None:
    written = document({Part.ENGINE: part_text(Part.ENGINE, "| a |\n"), Part.SERVER: "figures\n"})
    assert document(parts_of(written)) == written


def test_a_part_that_was_not_measured_stays() -> None:
    parts = parts_of(document({Part.ENGINE: "old engine\n", Part.SERVER: "old server\n"}))
    parts[Part.SERVER] = "new server\n"
    text = document(parts)
    assert "old engine" in text and "new server" in text and "old server" not in text


def test_the_engine_comes_first() -> None:
    text = document({Part.SERVER: "s\n", Part.ENGINE: "e\n"})
    assert text.index(Part.ENGINE) < text.index(Part.SERVER)
