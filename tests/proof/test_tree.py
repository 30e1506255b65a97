from __future__ import annotations

from pathlib import Path

from proof.tree import ROOT, files, tree_hash


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_code_and_tests_count_and_documents_do_not(tmp_path: Path) -> None:
    write(tmp_path, "topics/a.py", "1")
    write(tmp_path, "tests/b.py", "1")
    first = tree_hash(tmp_path)
    write(tmp_path, "docs/c.md", "1")
    write(tmp_path, "topics/__pycache__/a.pyc", "1")
    assert tree_hash(tmp_path) == first
    write(tmp_path, "tests/b.py", "2")
    second = tree_hash(tmp_path)
    write(tmp_path, "tests/b.py", "1")
    (tmp_path / "topics/a.py").rename(tmp_path / "topics/d.py")
    assert len({first, second, tree_hash(tmp_path)}) == 3


def test_files_are_those_below_the_names() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in files(ROOT, "proof", "Makefile")}
    assert {"proof/tree.py", "proof/mutants/core.py", "Makefile"} <= found
    assert not any("__pycache__" in name for name in found)
