"""What is wrong with the catalogue: rows without a test, tests that do not exist, names that come twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from proof.faults.catalogue import FAULTS_MIN, Fault
from proof.faults.tests import exists


def problems(faults: Sequence[Fault]) -> list[str]:
    """In words, none when all is well."""
    found = []
    if len(faults) < FAULTS_MIN:
        found.append(f"there are {len(faults)} faults; at least {FAULTS_MIN} are expected")
    counts = Counter(fault.name for fault in faults)
    found += [f"{name} is there {count} times" for name, count in counts.items() if count > 1]
    for fault in faults:
        if not fault.tests:
            found.append(f"{fault.name} names no test that shows it")
        if not fault.happens.endswith("."):
            found.append(f"{fault.name} does not say in a sentence what happens")
        found += [f"{fault.name} names {test}, which does not exist" for test in fault.tests if not exists(test)]
    return found
