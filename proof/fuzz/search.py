"""A search: from a corpus and a seed, inputs that reach what none before has reached, and those that crash.

The same corpus and seed give the same inputs. Tracing costs several times what a decoder does, so once news become
rare only every so many inputs are traced; all of them are run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from proof.fuzz.arcs import Arcs
from proof.fuzz.mutation import mutated
from proof.fuzz.target import Target
from proof.fuzz.trial import Crash, tried, watched, weighed

RECENT: Final = 16
"""Half of all inputs are made of one of the last so many that were kept."""
WEIGHED_EVERY: Final = 509
"""The memory of one in so many inputs is measured, and that of each that is kept."""
RARE_AFTER: Final = 50_000
"""Inputs without news, behind which fewer are traced."""
TRACED_EVERY: Final = 8


class Search:
    def __init__(self, target: Target, corpus: Iterable[bytes], seed: int) -> None:
        self.target = target
        self.corpus: list[bytes] = []
        self.arcs: set[int] = set()
        self.crashes: dict[tuple[str, str], Crash] = {}
        self.inputs = 0
        self._chance = Random(f"{target.name} {seed}")
        self._arcs = Arcs(module.__file__ for module in target.modules if module.__file__)
        self._uneventful = 0
        with watched():
            for data in corpus:
                self._look(target.mend(data))
        if not self.corpus:
            self.corpus.append(b"")

    def run(self, inputs: int) -> Iterator[int]:
        """So many inputs; says how many are done, now and then."""
        while inputs > 0:
            step = min(inputs, 256)
            with watched():
                for _ in range(step):
                    self._try_another()
            inputs -= step
            yield step

    def _try_another(self) -> None:
        chance, corpus = self._chance, self.corpus
        pool = corpus[-RECENT:] if chance.random() < 0.5 else corpus
        data = mutated(chance, chance.choice(pool), corpus, self.target.words, self.target.bytes_max)
        if chance.random() < 0.9:
            data = self.target.mend(data)
        self.inputs += 1
        if not self.inputs % WEIGHED_EVERY:
            self._note(weighed(self.target, data))
        elif self._uneventful < RARE_AFTER or not self.inputs % TRACED_EVERY:
            self._look(data)
        else:
            self._uneventful += 1
            self._note(tried(self.target, data))

    def _look(self, data: bytes) -> None:
        """Run an input, and keep it if it brings something new."""
        crash = tried(self.target, data)
        if crash is not None:
            self._note(crash)
            return
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
