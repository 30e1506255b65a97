"""What the documents show runs, from top to bottom of each page, and prints what they say it prints."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.tour import LANGUAGES, Tour, agree, blocks
from topics.client.connector import KEY_VARIABLE, URL_VARIABLE
from topics.model import Durability
from topics.settings import TABLE

ROOT = Path(__file__).parents[1]
SPARK_GUIDE = ROOT / "docs" / "guides" / "pipelines.md"
PAGES = sorted(
    {ROOT / "README.md", *(ROOT / "docs").glob("[a-z]*.md"), *(ROOT / "docs" / "guides").glob("*.md")} - {SPARK_GUIDE},
    key=str,
)
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]

ELSEWHERE = {
    "CONTRIBUTING.md": "sets up and tests the project itself",
    "docs/BENCHMARKS.md": "measures for minutes",
    "docs/CLI.md": "tests/cli/test_examples.py",
    "docs/GROUPS.md": "tests/contract/test_sdk_group.py",
    "docs/OPERATIONS.md": "tests/test_deploy.py",
    "docs/ROUTERS.md": "the engine's verbs by name",
    "docs/SDK.md": "signatures and docstrings",
    "docs/SPARK.md": "tests/spark/e2e/test_examples.py",
    "docs/guides/pipelines.md": "tests/spark/e2e/test_pipelineguide.py",
    "examples/live/README.md": "tests/e2e/test_live_page.py",
}
"""Documents with code that is not run here: what runs it instead, or why nothing does."""

NOT_RUN = {
    "README.md": 1,
    "docs/getting-started.md": 2,
    "docs/guides/browser.md": 1,
    "docs/guides/dataframes.md": 1,
    "docs/guides/sql.md": 1,
}
"""Blocks that are marked as not run, each with its reason."""

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl; `make test` installs it where it may")


def tour(path: Path, directory: Path) -> None:
    with Tour(directory) as place:
        for block in blocks(path.read_text()):
            place.take(block)


@needs_curl
@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_a_page_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    tour(path, tmp_path)


def test_what_is_not_run_is_marked_and_counted() -> None:
    marked = {name: [block for block in blocks(path.read_text()) if block.mark == "not run"] for name, path in pages()}
    assert {name: len(found) for name, found in marked.items() if found} == NOT_RUN
    assert all(len((block.about or "").split()) >= 4 for found in marked.values() for block in found), "say why"


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_every_block_of_a_page_is_understood(path: Path) -> None:
    text = path.read_text()
    found = blocks(text)
    shown = sum(block.shown is not None for block in found)
    assert 2 * (len(found) + shown) == len(re.findall(r"^```", text, re.M)), "a block that the tour would miss"
    assert len(re.findall(r"^<!--", text, re.M)) == sum(block.mark is not None for block in found)
    assert {block.language for block in found if block.mark is None} <= LANGUAGES | {"text"}
    files = [block.about for block in found if block.mark == "file"]
    assert [name for name in files if f"`{name}`" not in text] == [], "a reader does not see the mark"


def test_every_document_with_code_is_run_somewhere() -> None:
    written = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    with_code = {
        path.relative_to(ROOT).as_posix()
        for path in written
        if any(block.language in LANGUAGES for block in blocks(path.read_text()))
    }
    assert with_code - set(NAMES) == set(ELSEWHERE)
    assert all((ROOT / why).exists() for why in ELSEWHERE.values() if why.startswith("tests/"))


def test_guides_show_what_comes_out() -> None:
    """A block that prints nothing that anybody looks at proves little."""
    for name, path in pages():
        runs = [block for block in blocks(path.read_text()) if block.runs and not block.serves]
        silent = [block for block in runs if block.shown is None and block.language != "console"]
        assert len(silent) <= 1, name


def test_every_durability_class_has_its_line() -> None:
    text = (ROOT / "docs" / "concepts.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| (?:at once|handed|synced)", text, re.M) == [kind.value for kind in Durability]


def test_links_of_documents_outside_the_site_lead_somewhere() -> None:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"):
        targets = set(re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()))
        assert targets and [target for target in sorted(targets) if not (path.parent / target).exists()] == []


def test_settings_that_documents_name_exist() -> None:
    known = {row.variable for row in TABLE} | {URL_VARIABLE, KEY_VARIABLE}
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        named = set(re.findall(r"\bTOPICS_[A-Z_]*[A-Z]\b", path.read_text()))
        assert named <= known, path


def pages() -> list[tuple[str, Path]]:
    return list(zip(NAMES, PAGES, strict=True))


# ---- the tour itself


@pytest.mark.parametrize(
    "text",
    [
        "```python\nraise SystemExit(3)\n```\n",
        "```python\nimport topics.nowhere\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```sh\nfalse\ntrue\n```\n",
        "```console\n$ echo 1\n2\n```\n",
        "```sh\ntopics serve --no-such-flag\n```\n",
        "<!-- file: fails.py -->\n```python\nraise SystemExit(3)\n```\n\n```sh\npython fails.py\n```\n",
    ],
)
def test_a_block_that_is_wrong_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(AssertionError):
        tour(tmp_path / "page.md", tmp_path)


def test_variables_files_and_the_server_last_for_a_page(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "```sh\nexport TOPICS_API_KEYS=secret\ntopics serve\n```\n"
        "```sh\nexport TOPICS_API_KEY=secret\ntopics write orders 1 > written\n```\n"
        "<!-- file: look.py -->\n```python\nimport topics\nprint(topics.sync.connect('http://localhost:4000'))\n```\n"
        "<!-- not run: it would fail if it were -->\n```sh\nfalse\n```\n"
        "```console\n$ topics read orders\n2026-06-02 17:06:40.000  1  1\n$ wc -l < written\n1\n```\n"
    )
    tour(tmp_path / "page.md", tmp_path)
    assert "localhost:4000" not in (tmp_path / "look.py").read_text()


def test_what_differs_from_run_to_run_may_differ() -> None:
    assert agree('{"$ts":1794749776749,"performance":{"a":1}}\n', '{"$ts":1780420000000,"performance":{…}}')
    assert agree("a\nb\nc\nd\n", "a\n…\nd")
    assert not agree("a\nb\n", "a…")
    assert not agree("ab", "a.")
