"""Leases of jobs that follow on each other, which one worker got at once and for the first time: one object for all.

Nearly all leases begin like this, and most end like this, too: a claim takes the next jobs of the log, and an ack names
all of them. So what is held costs by the claim and not by the job. When something happens to a part of a run, the run
is cut: what is left of it before and behind that part are runs again.

A run is found by any of its seqs, through the pages of the seqs that it covers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_PAGE_BITS: Final = 4
"""Seqs of a page. More would be more runs to look through, fewer more pages for a long run."""


class LeaseRun:
    """The jobs from `first_seq` to `last_seq`, each delivered once. Its tokens go up by one from job to job."""

    __slots__ = ("due_ms", "first_seq", "holder", "last_seq", "token")

    def __init__(self, first_seq: int, last_seq: int, due_ms: int, holder: int, token: int) -> None:
        self.first_seq = first_seq
        self.last_seq = last_seq
        self.due_ms = due_ms
        self.holder = holder
        self.token = token

    def token_of(self, seq: int) -> int:
        return self.token + seq - self.first_seq


class LeaseRuns:
    __slots__ = ("_pages", "count", "job_count")

    def __init__(self) -> None:
        self.count = 0
        self.job_count = 0
        """In all runs."""
        self._pages: dict[int, list[LeaseRun]] = {}

    def __iter__(self) -> Iterator[LeaseRun]:
        """All of them, in no order; nothing may change meanwhile."""
        for page, runs in self._pages.items():
            for run in runs:
                if run.first_seq >> _PAGE_BITS == page:
                    yield run

    def at(self, seq: int) -> LeaseRun | None:
        """The run that a seq is in."""
        for run in self._pages.get(seq >> _PAGE_BITS, ()):
            if run.first_seq <= seq <= run.last_seq:
                return run
        return None

    def between(self, first_seq: int, end_seq: int) -> list[LeaseRun]:
        """The runs that begin from `first_seq` on and before `end_seq`."""
        passed = range(first_seq >> _PAGE_BITS, (end_seq >> _PAGE_BITS) + 1)
        pages = passed if len(passed) < len(self._pages) else [page for page in self._pages if page in passed]
        return [
            run
            for page in pages
            for run in self._pages.get(page, ())
            if run.first_seq >> _PAGE_BITS == page and first_seq <= run.first_seq < end_seq
        ]

    def add(self, run: LeaseRun) -> None:
        self.count += 1
        self.job_count += run.last_seq - run.first_seq + 1
        pages = self._pages
        for page in range(run.first_seq >> _PAGE_BITS, (run.last_seq >> _PAGE_BITS) + 1):
            found = pages.get(page)
            if found is None:
                pages[page] = [run]
            else:
                found.append(run)

    def grow(self, run: LeaseRun) -> None:
        """One job more at the end of a run."""
        run.last_seq += 1
        self.job_count += 1
        if run.last_seq >> _PAGE_BITS != (run.last_seq - 1) >> _PAGE_BITS:
            self._pages.setdefault(run.last_seq >> _PAGE_BITS, []).append(run)

    def cut(self, run: LeaseRun, first_seq: int, last_seq: int) -> LeaseRun | None:
        """Take jobs out of a run; what is left of it behind them, as a run of its own."""
        self._remove(run)
        if first_seq > run.first_seq:
            self.add(LeaseRun(run.first_seq, first_seq - 1, run.due_ms, run.holder, run.token))
        if last_seq == run.last_seq:
            return None
        behind = LeaseRun(last_seq + 1, run.last_seq, run.due_ms, run.holder, run.token_of(last_seq + 1))
        self.add(behind)
        return behind

    def _remove(self, run: LeaseRun) -> None:
        self.count -= 1
        self.job_count -= run.last_seq - run.first_seq + 1
        pages = self._pages
        for page in range(run.first_seq >> _PAGE_BITS, (run.last_seq >> _PAGE_BITS) + 1):
            found = pages[page]
            if len(found) == 1:
                del pages[page]
            else:
                found.remove(run)
