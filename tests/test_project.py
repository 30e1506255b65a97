"""The rules of the house that a machine can check, as a ratchet.

A check takes the files of a tree (path to text) and names what breaks it, so that each runs twice: over the project,
where it must find nothing, and over a planted tree, where it must find the plant.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import topics
from topics.cli import COMMANDS

ROOT = Path(__file__).parents[1]
NOT_OURS = {".git", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".import_linter_cache", ".hypothesis"}
NOT_OURS |= {"__pycache__", "topics.egg-info", "build", "dist", "data", "site"}

MODULE_LINES_MAX = 500
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
OPENS_FILES = {"topics/storage/fs.py", "topics/storage/sharedmemory.py", "topics/cli/streams.py"}
FILE_MODULES = {"os", "io", "mmap", "fcntl", "shutil", "tempfile", "pathlib", "glob"}
# Reading the environment, ending the process and joining names touch no file.
HARMLESS = {
    "os._exit",
    "os.environ",
    "os.getpid",
    "os.path.join",
    "os.path.basename",
    "os.path.dirname",
    "os.path.abspath",
    "shutil.which",
}
READS_TIME = {"topics/clock.py"}

Files = Mapping[str, str]
Check = Callable[[Files], list[str]]


def tree() -> dict[str, str]:
    """Every text file of the project by its path."""
    files = {}
    for path in sorted(ROOT.rglob("*")):
        name = path.relative_to(ROOT)
        if path.is_file() and not NOT_OURS & set(name.parts):
            # A picture has no words, and any three letters may stand in it by chance.
            text = "" if path.suffix == ".png" else path.read_text(encoding="utf-8", errors="replace")
            files[name.as_posix()] = text
    return files


def python(files: Files, *rooms: str) -> Iterator[tuple[str, str]]:
    return ((path, text) for path, text in files.items() if path.endswith(".py") and path.startswith(rooms))


def lines_with(pattern: str, files: Iterator[tuple[str, str]]) -> list[str]:
    found = re.compile(pattern)
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in files
        for number, line in enumerate(text.splitlines(), 1)
        if found.search(line)
    ]


def imports(text: str) -> Iterator[str]:
    """Dotted names a module imports: `os` for `import os`, `os.environ` for `from os import environ`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def long_modules(files: Files) -> list[str]:
    counts = ((path, len(text.splitlines())) for path, text in python(files, "topics/", "tests/", "bench/"))
    return [f"{path}: {count} lines" for path, count in counts if count > MODULE_LINES_MAX]


def left_overs(files: Files) -> list[str]:
    return lines_with(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b", iter(files.items()))


def silenced_types(files: Files) -> list[str]:
    return lines_with(r"#\s*type:\s*ignore|#\s*mypy:", python(files, "topics/"))


def vague_names(files: Files) -> list[str]:
    return [path for path in files if VAGUE_NAMES & set(re.split(r"[/_.]", path))]


def machine_traces(files: Files) -> list[str]:
    """Addresses of package indexes and paths of one machine have no place in a repository."""
    index = r"(?:extra-)?index-url\s*=?\s*h|find[-]links|pypi\.[a-z]|python[h]osted\."
    machine = r"(?<![\w.])/(?:work|root|home|opt|Users)/\w"
    return lines_with(f"{index}|{machine}", iter(files.items()))


def unpinned(files: Files) -> list[str]:
    lines = files.get("constraints.txt", "").splitlines()
    return [line for line in lines if not re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)]


def ambient_time(files: Files) -> list[str]:
    """Only the clock reads time."""
    package = [(path, text) for path, text in python(files, "topics/") if path not in READS_TIME]
    found = [
        f"{path}: imports {name}" for path, text in package for name in imports(text) if name.split(".")[0] == "time"
    ]
    return found + lines_with(r"\b(?:datetime|date)\.(?:now|utcnow|today)\(", iter(package))


def ambient_files(files: Files) -> list[str]:
    """Only the file system opens files, and a command what stands in for its streams; the test doubles may, too."""
    found = []
    for path, text in python(files, "topics/"):
        if path in OPENS_FILES or path.startswith("topics/testing/"):
            continue
        found += [
            f"{path}: imports {name}"
            for name in imports(text)
            if name.split(".")[0] in FILE_MODULES and name not in HARMLESS
        ]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
                found.append(f"{path}:{node.lineno}: open()")
    return found


def sleeping_tests(files: Files) -> list[str]:
    tests = ((path, text) for path, text in python(files, "tests/") if not path.startswith("tests/e2e/"))
    return lines_with(r"\bsleep\((?!0\))", tests)


def stray_tests(files: Files) -> list[str]:
    """A test file stands where its module stands: tests/storage/test_wal.py is about topics/storage/wal.py."""
    rooms = {path.split("/")[1] for path, _ in python(files, "topics/") if path.count("/") > 1}
    return [
        path
        for path, _ in python(files, "tests/")
        if (part := re.fullmatch(r"tests/(\w+)/test_(\w+)\.py", path))
        and part[1] in rooms - {"cli"}
        and f"topics/{part[1]}/{part[2]}.py" not in files
    ]


def unknown_commands(files: Files) -> list[str]:
    """What the documents tell a reader to type must exist."""
    targets = set(re.findall(r"^([a-z]+):", files.get("Makefile", ""), re.MULTILINE))
    commands = set(COMMANDS)
    found = []
    for path, text in files.items():
        if not path.endswith(".md"):
            continue
        typed = "\n".join(re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, re.DOTALL))
        typed += "\n" + "\n".join(re.findall(r"`([^`\n]+)`", text))
        made = re.findall(r"^\W*make ([a-z]+)", typed, re.MULTILINE)
        run = re.findall(r"^\W*topics ([a-z]+)", typed, re.MULTILINE)
        found += [f"{path}: make {name}" for name in made if name not in targets]
        found += [f"{path}: topics {name}" for name in run if name not in commands]
    return found


def undocumented(names: Mapping[str, object]) -> list[str]:
    """Public names need words of their own; those a dataclass makes up from its signature do not count."""
    callables = {name: value for name, value in names.items() if inspect.isclass(value) or callable(value)}
    return [
        name
        for name, value in callables.items()
        if not (doc := inspect.getdoc(value) if not inspect.isclass(value) else value.__dict__.get("__doc__"))
        or doc.startswith(f"{name}(")
    ]


PLANTS: list[tuple[Check, dict[str, str]]] = [
    (long_modules, {"topics/a.py": "x = 1\n" * (MODULE_LINES_MAX + 1)}),
    (left_overs, {"docs/a.md": "a " + "TO" + "DO for later"}),
    (silenced_types, {"topics/a.py": "x = 1  # " + "type: ignore[misc]"}),
    (vague_names, {"topics/core/log_utils.py": ""}),
    (machine_traces, {"constraints.txt": "--index-" + "url https://example.org/x"}),
    (machine_traces, {"README.md": "see /ho" + "me/someone/x"}),
    (unpinned, {"constraints.txt": "numpy==2.4.6\nmsgspec>=0.19\n"}),
    (unpinned, {"constraints.txt": "numpy @ file:///x\n"}),
    (ambient_time, {"topics/core/a.py": "from time import time_ns\n"}),
    (ambient_time, {"topics/cli/a.py": "stamp = datetime.now()\n"}),
    (ambient_files, {"topics/core/a.py": "import os\n"}),
    (ambient_files, {"topics/core/a.py": "from os.path import join, getsize\n"}),
    (ambient_files, {"topics/core/a.py": "text = open(name)\n"}),
    (sleeping_tests, {"tests/core/test_a.py": "await asyncio.sle" + "ep(0.1)\n"}),
    (stray_tests, {"topics/core/log.py": "", "tests/core/test_lgo.py": ""}),
    (unknown_commands, {"Makefile": "test: setup\n", "README.md": "run `make tset`"}),
    (unknown_commands, {"README.md": "```sh\n$ topics srve\n```"}),
]
CHECKS = list(dict.fromkeys(check for check, _ in PLANTS))


@pytest.fixture(scope="module")
def project() -> dict[str, str]:
    return tree()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_project_keeps(check: Check, project: Files) -> None:
    assert check(project) == []


@pytest.mark.parametrize(("check", "plant"), PLANTS, ids=lambda part: getattr(part, "__name__", ""))
def test_the_check_finds_a_plant(check: Check, plant: dict[str, str]) -> None:
    assert len(check(plant)) == 1


def test_the_tree_is_the_whole_project(project: Files) -> None:
    assert {"Makefile", "topics/errors.py", ".ci/run", "tests/test_project.py"} <= project.keys()


def test_public_names_are_documented() -> None:
    assert undocumented({name: getattr(topics, name) for name in getattr(topics, "__all__", ())}) == []


def test_an_undocumented_public_name_is_found() -> None:
    class Bare(Exception):
        pass

    def said() -> None:
        """Says something."""

    assert undocumented({"Bare": Bare, "said": said, "LIMIT": 3}) == ["Bare"]
