"""The audit of dependencies: what it finds, and that it claims nothing that it cannot know."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from proof import audit
from proof.audit import Dependency, advisories, closure, licence_of, pins, problems

ROOT = Path(__file__).parents[2]
MIT = "MIT"


def test_this_project_is_in_order() -> None:
    found = list(closure())
    assert {"msgspec", "numpy", "pytest", "pyarrow"} <= {each.name for each in found}
    assert not problems(found, pins((ROOT / "constraints.txt").read_text()))


def test_what_is_wrong_is_named() -> None:
    pinned = pins("# ours\na==1\nb==2\nc==3  # because\n")
    found = problems(
        [
            Dependency("a", "1", MIT),
            Dependency("b", "3", MIT),
            Dependency("c", "3", "Proprietary"),
            Dependency("d", "4", MIT),
            Dependency("e", "", ""),
        ],
        pinned,
    )
    assert [line.split()[0] for line in found] == ["b", "c", "d", "e"]
    assert "3 is installed and 2 is pinned" in found[0] and "not pinned" in found[2] and "not installed" in found[3]


def test_a_licence_is_found_wherever_it_is_said() -> None:
    for name in ("msgspec", "numpy", "pytest-timeout", "pyarrow"):
        assert audit.LICENCES.search(licence_of(distribution(name))), name


def test_what_the_index_knows_is_told() -> None:
    known = {"id": "X-1", "fixed_in": ["1.1"], "summary": "bad"}
    answers: dict[str, Any] = {
        "/pypi/a/1/json": {"vulnerabilities": [known]},
        "/pypi/b/2/json": {"vulnerabilities": [], "urls": [{"yanked": True}]},
        "/pypi/c/3/json": {"urls": [{"yanked": False}]},
    }
    asked = [Dependency("a", "1", MIT), Dependency("b", "2", MIT), Dependency("c", "3", MIT)]
    found, told = advisories(asked, lambda path, seconds: answers[path], 5)
    assert found == ["a 1: X-1, fixed in 1.1: bad", "b 2 was withdrawn by those who made it"]
    assert told == "advisories: 3 of 3 versions asked for"


def test_an_index_that_knows_nothing_fails_nothing() -> None:
    def missing(path: str, seconds: float) -> Any:
        raise HTTPError(path, 404, "Not Found", None, None)  # type: ignore[arg-type]

    def unreachable(path: str, seconds: float) -> Any:
        raise URLError("no route")

    for fetch, why in ((missing, "status 404"), (unreachable, "URLError")):
        found, told = advisories([Dependency("a", "1", MIT)], fetch, 1)
        assert not found and told == f"advisories: not known, the index serves none here ({why})"


def test_it_is_part_of_every_check() -> None:
    makefile = (ROOT / "Makefile").read_text()
    check = makefile.partition("\ncheck:")[2].partition("\n\n")[0]
    assert "-m proof.audit" in check and "\ntest: check" in makefile
