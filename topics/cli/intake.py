"""From what somebody typed or piped to records: each line parsed, its place named when it is bad."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from topics.cli.lines import parse_data, parse_record
from topics.cli.source import Batch
from topics.client.fields import RecordFields
from topics.errors import InvalidRequest
from topics.model import Gap


@dataclass(frozen=True, slots=True)
class Intake:
    """What a line is, and what a record gets that has no tag or meta of its own."""

    as_records: bool
    as_text: bool
    tag: str | None
    meta: Mapping[str, str]
    on_gap: Callable[[str], None]
    """Told of lines that are gaps: there is nothing to write, and nothing to hide."""

    def arguments(self, texts: Iterable[str]) -> list[RecordFields]:
        """The records of a command line."""
        return self._records((f"DATA {number}", text.encode()) for number, text in enumerate(texts, 1))

    def batch(self, batch: Batch) -> list[RecordFields]:
        """The records of a batch of lines; gaps are left out."""
        return self._records((f"{batch.source} line {number}", line) for number, line in batch.lines)

    def _records(self, texts: Iterable[tuple[str, bytes]]) -> list[RecordFields]:
        found = (self._record(place, text) for place, text in texts)
        return [record for record in found if record is not None]

    def _record(self, place: str, text: bytes) -> RecordFields | None:
        try:
            record = self._parse(text)
        except ValueError as error:
            hint = "" if self.as_text or self.as_records else "; with --text it is taken as it is"
            raise InvalidRequest(f"{place}: {error}{hint}", field=place) from None
        if isinstance(record, Gap):
            self.on_gap(
                f"{place}: {record.gap_from} to {record.gap_to} were lost at their source ({record.reason.value})"
            )
            return None
        if self.tag is not None:
            record.setdefault("tag", self.tag)
        if self.meta:
            record.setdefault("meta", self.meta)
        return record

    def _parse(self, text: bytes) -> RecordFields | Gap:
        if self.as_records:
            return parse_record(text)
        if not self.as_text:
            return parse_data(text)
        try:
            return {"data": text.removesuffix(b"\r").decode()}
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8: {error.reason} at byte {error.start + 1}") from None


def parse_meta(pairs: Iterable[str]) -> dict[str, str]:
    """`NAME=TEXT` of a command line."""
    meta: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InvalidRequest(f'--meta {pair} has no name and value; expected NAME=TEXT, for example "trace=17"')
        meta[name] = text
    return meta
