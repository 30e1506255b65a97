"""A search: from a corpus and a seed, inputs that reach what none before has reached, and those that crash.

The same corpus and seed give the same inputs. Every input is run, and fails if it crashes. Which arcs it takes is seen
by running it once more, traced, which costs several times as much; so once news become rare that is done with one in
so many, and with each that went a way that none before it went.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from random import Random
from typing import Final

from proof.fuzz.arcs import Arcs
from proof.fuzz.mutation import siblings
from proof.fuzz.target import Target
from proof.fuzz.trial import Crash, attempt, watched, weighed

RECENT: Final = 16
"""Half of all inputs are made of one of the last so many that were kept."""
MENDED_SHARE: Final = 0.9
"""Of the inputs; the sums of the others are left wrong."""
WEIGHED_EVERY: Final = 1021
"""The memory of one in so many inputs is measured, and that of each that is kept."""
RARE_AFTER: Final = 1_000
"""Inputs without news, behind which fewer are traced."""
TRACED_EVERY: Final = 64
STEP_INPUTS: Final = 1024
"""So many are done before whoever started the search hears of them."""


class Search:
    def __init__(self, target: Target, corpus: Iterable[bytes], seed: int) -> None:
        self.target = target
        self.corpus: list[bytes] = []
        self.arcs: set[int] = set()
        self.crashes: dict[tuple[str, str], Crash] = {}
        self.inputs = 0
        """Made and run."""
        self.traced = 0
        """Of those, the ones whose arcs were looked at."""
        self._chance = Random(f"{target.name} {seed}")
        self._arcs = Arcs(module.__file__ for module in target.modules if module.__file__)
        self._ways: set[Hashable] = set()
        self._uneventful = 0
        with watched():
            for data in corpus:
                self._begin_with(target.mend(data)[: target.bytes_max])
        if not self.corpus:
            self.corpus.append(b"")
        self._mutants = self._mutate()

    def run(self, inputs: int) -> Iterator[int]:
        """So many inputs; says how many are done, now and then."""
        while inputs > 0:
            step = min(inputs, STEP_INPUTS)
            with watched():
                for data in islice(self._mutants, step):
                    self._try(data)
            inputs -= step
            yield step

    def _mutate(self) -> Iterator[bytes]:
        """Inputs without end, out of the corpus as it is by then."""
        chance, corpus, target = self._chance, self.corpus, self.target
        draw, mend, bytes_max = chance.random, target.mend, target.bytes_max
        while True:
            recent = min(RECENT, len(corpus)) if draw() < 0.5 else len(corpus)
            parent = corpus[-1 - int(draw() * recent)]
            for data in siblings(chance, parent, corpus, target.words, bytes_max):
                yield mend(data)[:bytes_max] if draw() < MENDED_SHARE else data

    def _begin_with(self, data: bytes) -> None:
        came = attempt(self.target, data)
        if isinstance(came, Crash):
            self._note(came)
        else:
            self._ways.add(came)
            self._look(data)

    def _try(self, data: bytes) -> None:
        self.inputs += 1
        came = attempt(self.target, data)
        if came.__class__ is Crash:
            self._note(came)
            return
        if came not in self._ways or self._uneventful < RARE_AFTER or not self.inputs % TRACED_EVERY:
            self._ways.add(came)
            self.traced += 1
            self._look(data)
        else:
            self._uneventful += 1
        if not self.inputs % WEIGHED_EVERY:
            self._note(weighed(self.target, data))

    def _look(self, data: bytes) -> None:
        """See which arcs an input takes, and keep it if there are new ones among them."""
        news = self._arcs.of(self.target.run, data) - self.arcs
        if not news:
            self._uneventful += 1
            return
        self._uneventful = 0
        self.arcs |= news
        self._note(weighed(self.target, data))
        self.corpus.append(data)

    def _note(self, crash: Crash | None) -> None:
        if crash is not None:
            self.crashes.setdefault(crash.signature, crash)
