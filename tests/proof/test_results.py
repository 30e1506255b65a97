from __future__ import annotations

from pathlib import Path

from proof.results import load, save, today


def test_a_result_comes_back(tmp_path: Path) -> None:
    path = save("kill", "make soak", {"cycles": 3}, tmp_path / "new")
    assert path.name == "kill.json"
    assert load("kill", tmp_path / "new") == {"name": "kill", "date": today(), "command": "make soak", "cycles": 3}


def test_what_is_no_result_is_none(tmp_path: Path) -> None:
    assert load("kill", tmp_path) is None
    for text in ("", "{", "[1]"):
        (tmp_path / "kill.json").write_text(text)
        assert load("kill", tmp_path) is None


def test_the_one_before_stays_until_the_next_is_whole(tmp_path: Path) -> None:
    save("kill", "c", {"n": 1}, tmp_path)
    save("kill", "c", {"n": 2}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kill.json"]
