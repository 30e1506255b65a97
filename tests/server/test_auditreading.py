"""The audit log read: pages of a search that finds little, and what is said of a chain that does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.core.test_auditchain import chain
from tests.server.api import serving
from topics.core.auditchain import link_of
from topics.server import auditreading
from topics.server.auditfile import AuditFile
from topics.server.auditreading import Search, Verdict, compare, verify_files
from topics.testing import FakeDisk


@on_loop
async def test_a_search_that_finds_too_little_goes_on_with_the_next_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auditreading, "WINDOW", 2)
    monkeypatch.setattr(auditreading, "WINDOWS_MAX", 2)
    async with serving(tmp_path) as api:
        for number in range(9):
            await api.put(f"/v0/topics/t{number}", {})
        found: list[list[str]] = []
        cursor = ""
        while not found or cursor:
            page = (await api.get(f"/v1/audit?text=t1&outcome=begun&cursor={cursor or 0}")).body
            found.append([entry["name"] for entry in page["entries"]])
            cursor = page.get("next_cursor", "")
        assert found == [[], [], [], ["t1"], []], "four lines of eighteen are looked at for each page"


def test_a_search_may_be_for_a_person_or_a_key() -> None:
    entry = {"who": "ada@example.org", "key": "key-1"}
    assert Search(who="ada@example.org").finds(entry, b"{}") and Search(who="key-1").finds(entry, b"{}")
    assert not Search(who="eve@example.org").finds(entry, b"{}")


def test_a_file_that_holds_no_line_at_all_is_named() -> None:
    fs, lines = FakeDisk(), chain(2)
    fs.make_dir("/d")
    fs.make_dir("/d/audit")
    for name, text in (("audit-000000000001.jsonl", b"nonsense\n"), ("audit.jsonl", lines[0] + b"\n")):
        file = fs.open(f"/d/audit/{name}", "create")
        file.write_at(0, [text])
        file.close()
    verdict = verify_files(AuditFile(fs, "/d"))
    assert (verdict.line_count, verdict.first_seq, verdict.last) == (0, 0, None)
    assert verdict.problem.startswith("/d/audit/audit-000000000001.jsonl, line 1: the line was changed")


def test_a_chain_over_several_files_begins_with_the_first_of_them() -> None:
    fs, lines = FakeDisk(), chain(4)
    fs.make_dir("/d")
    file = AuditFile(fs, "/d", file_bytes_max=1)
    file.open()
    for seq, line in enumerate(lines, 1):
        file.append(seq, [line])
    file.close()
    assert len(file.files()) == 4
    verdict = verify_files(file)
    assert (verdict.line_count, verdict.first_seq, verdict.problem) == (4, 1, "")
    assert verdict.last == link_of(lines[-1])


def test_a_copy_that_was_changed_is_told_unless_the_files_are_worse() -> None:
    lines = chain(2)
    links = [link_of(line) for line in lines]
    hashes = {link.seq: link.hash for link in links if link is not None}
    verdict = Verdict(2, 1, links[-1], hashes=hashes)
    compare(verdict, links)
    assert verdict.problem == ""
    compare(verdict, [links[0], None])
    assert verdict.problem == "the copy in _audit has a line that was changed"
    broken = Verdict(problem="audit.jsonl, line 1: broken")
    compare(broken, [None])
    assert broken.problem == "audit.jsonl, line 1: broken"
