"""The dependencies, looked at: `python -m proof.audit`, a part of `make check`.

Without a network: each dependency of the package is pinned, the version that is installed is the one that is pinned,
and its licence is one that we take. With one: the index is asked for advisories about these versions, through the
JSON that it serves beside its pages. An index that has none, or does not answer in time, is said to be so and fails
nothing: what is not known is not claimed.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[1]
PROJECT: Final = "topics"
ONLINE_S: Final = 3.0
"""How long the index may take for all of it."""
REQUESTS_AT_ONCE: Final = 16

LICENCES: Final = re.compile(
    r"mit|bsd|apache|isc|psf|python software|mozilla public|mpl|unlicense|zlib|0bsd|lgpl|lesser general|cc0|blueoak",
    re.IGNORECASE,
)
"""What we may build on and pass on: permissive ones, and those that only ask for their own changes."""

Fetch = Callable[[str, float], Any]
"""The JSON of a path of the index, within so many seconds."""


@dataclass(frozen=True, slots=True)
class Dependency:
    name: str
    version: str
    licence: str


def pins(text: str) -> dict[str, str]:
    """Names and versions of a file of constraints."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def licence_of(found: Distribution) -> str:
    """What a distribution says of its licence, wherever it says it."""
    about: Any = found.metadata
    classifiers = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    said = [about.get("License-Expression") or "", *classifiers, (about.get("License") or "").partition("\n")[0]]
    texts = [
        file.read_text() for file in found.files or () if "dist-info" in str(file) and "LICENSE" in file.name.upper()
    ]
    said += [text.strip().partition("\n")[0] for text in texts if text]
    return "; ".join(each for each in said if each.strip())


def closure(project: str = PROJECT) -> Iterator[Dependency]:
    """All distributions that a project needs with all of its extras, as far as they are installed."""
    waiting = [Requirement(f"{project}[dev]")]
    seen: set[tuple[str, frozenset[str]]] = set()
    named: set[str] = {project}
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in seen:
            continue
        seen.add((name, frozenset(wanted.extras)))
        try:
            found = distribution(wanted.name)
        except PackageNotFoundError:
            if name not in named:
                yield Dependency(name, "", "")
                named.add(name)
            continue
        if name not in named:
            named.add(name)
            yield Dependency(name, found.version, licence_of(found))
        for text in found.requires or ():
            each = Requirement(text)
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras)):
                waiting.append(each)


def problems(dependencies: Iterable[Dependency], pinned: dict[str, str]) -> list[str]:
    """What is wrong with them, in words."""
    found = []
    for each in dependencies:
        if not each.version:
            found.append(f"{each.name} is needed and not installed: run `make setup`")
        elif each.name not in pinned:
            found.append(f"{each.name} is not pinned: add {each.name}=={each.version} to constraints.txt")
        elif pinned[each.name] != each.version:
            found.append(f"{each.name} {each.version} is installed and {pinned[each.name]} is pinned: run `make setup`")
        if each.version and not LICENCES.search(each.licence):
            found.append(
                f"{each.name} has the licence {each.licence or 'of nobody knows which kind'}, which we do not know"
            )
    return sorted(found)


def advisories(dependencies: Iterable[Dependency], fetch: Fetch, seconds: float) -> tuple[list[str], str]:
    """What the index knows against these versions, and in words how much of it could be asked."""
    chosen = sorted(dependencies, key=lambda each: each.name)
    deadline_s = time.monotonic() + seconds
    try:
        fetch(_path(chosen[0]), seconds)
    except Exception as error:
        why = f"status {error.code}" if isinstance(error, HTTPError) else type(error).__name__
        return [], f"advisories: not known, the index serves none here ({why})"
    pool = ThreadPoolExecutor(REQUESTS_AT_ONCE)
    asked = {each: pool.submit(fetch, _path(each), seconds) for each in chosen}
    done, _ = wait(asked.values(), max(0.0, deadline_s - time.monotonic()))
    pool.shutdown(wait=False, cancel_futures=True)
    answers = {each: future.result() for each, future in asked.items() if future in done and not future.exception()}
    found = []
    for each, about in answers.items():
        found += [f"{each.name} {each.version}: {_shown(known)}" for known in about.get("vulnerabilities") or ()]
        if any(file.get("yanked") for file in about.get("urls") or ()):
            found.append(f"{each.name} {each.version} was withdrawn by those who made it")
    return found, f"advisories: {len(answers)} of {len(chosen)} versions asked for"


def _path(each: Dependency) -> str:
    return f"/pypi/{each.name}/{each.version}/json"


def _shown(known: dict[str, Any]) -> str:
    fixed = ", ".join(known.get("fixed_in") or ()) or "nothing yet"
    return f"{known.get('id', 'an advisory')}, fixed in {fixed}: {str(known.get('summary') or '')[:100]}"


def fetch(path: str, seconds: float) -> Any:
    """From the index that pip would use."""
    from pip._internal.models.index import PyPI

    with urlopen(Request(PyPI.url.rstrip("/") + path), timeout=seconds) as answer:
        return json.loads(answer.read())


def main() -> int:
    dependencies = list(closure())
    found = problems(dependencies, pins((ROOT / "constraints.txt").read_text()))
    known, told = advisories([each for each in dependencies if each.version], fetch, ONLINE_S)
    for line in (*found, *known):
        sys.stdout.write(f"  {line}\n")
    sys.stdout.write(f"  {len(dependencies)} dependencies; {told}\n")
    return 1 if found or known else 0


if __name__ == "__main__":
    sys.exit(main())
