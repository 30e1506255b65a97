"""FaultFs: any file system, with calls that fail, tear, lie or end the process when a test says so.

Every call gets a number, from 0, and is kept in `calls` by name and path. A rule matches calls by a glob on
the name and one on the path (for `rename`, either path), counts the matches from the moment it is set, and
fires on the nth, once or on every later match too. Of several that are due the one set first decides, but a
crash always comes to pass, around whatever another rule makes of the call:

    fail    the call is not made and raises `OSError` with the given errno.
    tear    the first bytes of a `write_at` are written, then it raises.
    skip    a `sync` or `sync_dir` is not made and says it was: a disk that lies.
    crash   `SimulatedCrash` is raised, before the call is made or after it. It is no `Exception`, so that
            nothing which handles errors can swallow it, and from then on every call raises it again:
            a dead process does not clean up behind itself.

To visit every crash point of a workload, run it once without rules and then once per entry of `calls`, with
`crash_at(index)`. The disk that the dead process leaves is the inner one's to say (`FakeDisk.crash`).
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeVar, get_args

from topics.storage.fs import Buffer, DirectoryLock, File, FileSystem, Mapping, OpenMode, failure

CallName = Literal[
    "open", "map", "rename", "unlink", "list", "exists", "make_dir", "rename_dir", "remove_dir", "sync_dir",
    "lock", "unlock", "boot_id", "recall", "memorize", "forget", "free_bytes", "restrict", "write_at", "read_at",
    "size", "truncate", "allocate", "sync", "close",
]  # fmt: skip
CALL_NAMES: tuple[CallName, ...] = get_args(CallName)

CHANGING_CALLS: frozenset[CallName] = frozenset({
    "open", "rename", "unlink", "make_dir", "rename_dir", "remove_dir", "sync_dir", "lock", "unlock", "memorize",
    "forget", "write_at", "truncate", "allocate", "sync",
})  # fmt: skip
"""Calls around which the disk may differ: a crash at any other is the same as one at the next of these."""

When = Literal["before", "after"]
Result = TypeVar("Result")


class SimulatedCrash(BaseException):
    """The process dies here."""


@dataclass(frozen=True, slots=True)
class Call:
    index: int
    name: CallName
    path: str
    target: str = ""

    @property
    def changes(self) -> bool:
        return self.name in CHANGING_CALLS


@dataclass(frozen=True, slots=True)
class Fail:
    code: int


@dataclass(frozen=True, slots=True)
class Tear:
    keep_bytes: int
    code: int


@dataclass(frozen=True, slots=True)
class Skip:
    pass


@dataclass(frozen=True, slots=True)
class Crash:
    when: When


Effect = Fail | Tear | Skip | Crash
Observer = Callable[[Call], None]


@dataclass(slots=True)
class Rule:
    """When to do what; `matched` and `fired` count, so that a test can tell its fault really happened."""

    effect: Effect
    call: str = "*"
    path: str = "*"
    nth: int = 1
    always: bool = False
    on_fire: Observer | None = None
    matched: int = 0
    fired: int = 0

    def is_due(self, call: Call) -> bool:
        """Count this call if it matches; is it one to fire on?"""
        if not fnmatchcase(call.name, self.call):
            return False
        if not (fnmatchcase(call.path, self.path) or (call.target and fnmatchcase(call.target, self.path))):
            return False
        self.matched += 1
        return self.matched == self.nth or (self.always and self.matched > self.nth)


class FaultFs:
    def __init__(self, inner: FileSystem) -> None:
        self.inner = inner
        self.calls: list[Call] = []
        self.crashed = False
        self.on_call: Observer | None = None
        """Told of every call before it is made."""
        self._rules: list[Rule] = []
        self._mutex = threading.Lock()

    # Rules.

    def fail(
        self,
        call: str,
        code: int = errno.EIO,
        *,
        path: str = "*",
        nth: int = 1,
        always: bool = False,
        on_fire: Observer | None = None,
    ) -> Rule:
        return self._add(Rule(Fail(code), call, path, nth, always, on_fire))

    def tear(
        self, keep_bytes: int, code: int = errno.ENOSPC, *, path: str = "*", nth: int = 1, always: bool = False
    ) -> Rule:
        return self._add(Rule(Tear(keep_bytes, code), "write_at", path, nth, always))

    def skip(self, call: Literal["sync", "sync_dir"], *, path: str = "*", nth: int = 1, always: bool = False) -> Rule:
        return self._add(Rule(Skip(), call, path, nth, always))

    def crash(self, call: str = "*", *, path: str = "*", nth: int = 1, when: When = "before") -> Rule:
        return self._add(Rule(Crash(when), call, path, nth))

    def crash_at(self, index: int, when: When = "before") -> Rule:
        """Die at the call that will be `calls[index]`."""
        if index < len(self.calls):
            raise ValueError(f"call {index} has been made already: {len(self.calls)} calls are past")
        return self.crash(nth=index + 1 - len(self.calls), when=when)

    def clear(self) -> None:
        """Take all rules back, as if the disk had been repaired. A crashed process stays dead."""
        with self._mutex:
            self._rules.clear()

    def _add(self, rule: Rule) -> Rule:
        if not any(fnmatchcase(name, rule.call) for name in CALL_NAMES):
            raise ValueError(f"no call is named {rule.call!r}; there are {', '.join(CALL_NAMES)}")
        if rule.nth < 1:
            raise ValueError(f"nth counts from 1, not {rule.nth}")
        with self._mutex:
            self._rules.append(rule)
        return rule

    # Calls.

    def perform(
        self,
        name: CallName,
        path: str,
        action: Callable[[], Result],
        *,
        target: str = "",
        skipped: Callable[[], Result] | None = None,
        torn: Callable[[int], None] | None = None,
    ) -> Result:
        """Make one call as the rules have it; `skipped` and `torn` say how it is left out or done in part."""
        due = self._count(name, path, target)
        crash = next((rule.effect for rule in due if isinstance(rule.effect, Crash)), None)
        if crash is not None and crash.when == "before":
            raise SimulatedCrash(f"before {name} of {path}")
        try:
            match next((rule.effect for rule in due if not isinstance(rule.effect, Crash)), None):
                case Fail(code):
                    raise failure(code, path)
                case Tear(keep_bytes, code):
                    assert torn is not None, f"{name} cannot be torn"
                    torn(keep_bytes)
                    raise failure(code, path)
                case Skip():
                    assert skipped is not None, f"{name} cannot be skipped"
                    result = skipped()
                case None:
                    result = action()
        except OSError as error:
            if crash is not None:
                raise SimulatedCrash(f"after {name} of {path} failed") from error
            raise
        if crash is not None:
            raise SimulatedCrash(f"after {name} of {path}")
        return result

    def _count(self, name: CallName, path: str, target: str) -> list[Rule]:
        """Give the call its number; the rules that fire on it: at most one crash and one other."""
        with self._mutex:
            if self.crashed:
                raise SimulatedCrash(f"{name} of {path} by a process that is dead")
            call = Call(len(self.calls), name, path, target)
            self.calls.append(call)
            due = [rule for rule in self._rules if rule.is_due(call)]
            crashes = [rule for rule in due if isinstance(rule.effect, Crash)][:1]
            firing = crashes + [rule for rule in due if not isinstance(rule.effect, Crash)][:1]
            for rule in firing:
                rule.fired += 1
            self.crashed = bool(crashes)
        if self.on_call is not None:
            self.on_call(call)
        for rule in firing:
            if rule.on_fire is not None:
                rule.on_fire(call)
        return firing

    # The file system.

    def open(self, path: str, mode: OpenMode) -> File:
        return FaultFile(self, self.perform("open", path, lambda: self.inner.open(path, mode)))

    def map(self, path: str) -> Mapping:
        return self.perform("map", path, lambda: self.inner.map(path))

    def rename(self, source: str, target: str) -> None:
        self.perform("rename", source, lambda: self.inner.rename(source, target), target=target)

    def unlink(self, path: str) -> None:
        self.perform("unlink", path, lambda: self.inner.unlink(path))

    def list(self, directory: str) -> list[str]:
        return self.perform("list", directory, lambda: self.inner.list(directory))

    def exists(self, path: str) -> bool:
        return self.perform("exists", path, lambda: self.inner.exists(path))

    def make_dir(self, path: str) -> None:
        self.perform("make_dir", path, lambda: self.inner.make_dir(path))

    def rename_dir(self, source: str, target: str) -> None:
        self.perform("rename_dir", source, lambda: self.inner.rename_dir(source, target), target=target)

    def remove_dir(self, path: str) -> None:
        self.perform("remove_dir", path, lambda: self.inner.remove_dir(path))

    def sync_dir(self, path: str) -> None:
        self.perform("sync_dir", path, lambda: self.inner.sync_dir(path), skipped=_nothing)

    def lock(self, path: str) -> DirectoryLock:
        return FaultLock(self, path, self.perform("lock", path, lambda: self.inner.lock(path)))

    def boot_id(self) -> str:
        return self.perform("boot_id", "", self.inner.boot_id)

    def recall(self, directory: str) -> Sequence[int]:
        return self.perform("recall", directory, lambda: self.inner.recall(directory))

    def memorize(self, directory: str, count: int) -> memoryview | None:
        return self.perform("memorize", directory, lambda: self.inner.memorize(directory, count))

    def forget(self, directory: str) -> None:
        self.perform("forget", directory, lambda: self.inner.forget(directory))

    def free_bytes(self, path: str) -> int:
        return self.perform("free_bytes", path, lambda: self.inner.free_bytes(path))

    def restrict(self, path: str) -> None:
        self.perform("restrict", path, lambda: self.inner.restrict(path))


def _nothing() -> None:
    pass


class FaultFile:
    def __init__(self, fs: FaultFs, inner: File) -> None:
        self.path = inner.path
        self._fs = fs
        self._inner = inner

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        def torn(keep_bytes: int) -> None:
            self._inner.write_at(offset, [b"".join(buffers)[:keep_bytes]])

        self._fs.perform("write_at", self.path, lambda: self._inner.write_at(offset, buffers), torn=torn)

    def read_at(self, offset: int, length: int) -> bytes:
        return self._fs.perform("read_at", self.path, lambda: self._inner.read_at(offset, length))

    def size(self) -> int:
        return self._fs.perform("size", self.path, self._inner.size)

    def truncate(self, length: int) -> None:
        self._fs.perform("truncate", self.path, lambda: self._inner.truncate(length))

    def allocate(self, length: int) -> None:
        self._fs.perform("allocate", self.path, lambda: self._inner.allocate(length))

    def sync(self) -> None:
        self._fs.perform("sync", self.path, self._inner.sync, skipped=_nothing)

    def close(self) -> None:
        self._fs.perform("close", self.path, self._inner.close)


class FaultLock:
    def __init__(self, fs: FaultFs, path: str, inner: DirectoryLock) -> None:
        self._fs = fs
        self._path = path
        self._inner = inner

    def release(self) -> None:
        self._fs.perform("unlock", self._path, self._inner.release)
