from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from topics.core.partition import partition_of

FOR_EVER = [
    ("", 1, 0),
    ("", 2, 1),
    ("", 3, 2),
    ("", 16, 8),
    ("", 1024, 975),
    ("a", 1, 0),
    ("a", 2, 0),
    ("a", 3, 0),
    ("a", 16, 4),
    ("a", 1024, 411),
    ("order-1", 1, 0),
    ("order-1", 2, 0),
    ("order-1", 3, 2),
    ("order-1", 16, 8),
    ("order-1", 1024, 412),
    ("order-2", 1, 0),
    ("order-2", 2, 1),
    ("order-2", 3, 1),
    ("order-2", 16, 3),
    ("order-2", 1024, 536),
    ("tenant42:job-9001", 1, 0),
    ("tenant42:job-9001", 2, 1),
    ("tenant42:job-9001", 3, 1),
    ("tenant42:job-9001", 16, 1),
    ("tenant42:job-9001", 1024, 217),
    ("käse", 1, 0),
    ("käse", 2, 0),
    ("käse", 3, 2),
    ("käse", 16, 7),
    ("käse", 1024, 308),
    ("日本語", 1, 0),
    ("日本語", 2, 1),
    ("日本語", 3, 1),
    ("日本語", 16, 8),
    ("日本語", 1024, 712),
    ("😀", 1, 0),
    ("😀", 2, 1),
    ("😀", 3, 2),
    ("😀", 16, 2),
    ("😀", 1024, 636),
    ("0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", 1, 0),
    ("0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", 2, 1),
    ("0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", 3, 2),
    ("0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", 16, 12),
    ("0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", 1024, 376),
]
"""Clients compute these too: a changed line here means records of one key in two partitions."""


@pytest.mark.parametrize(("key", "partitions", "expected"), FOR_EVER)
def test_the_partition_of_a_key_never_changes(key: str, partitions: int, expected: int) -> None:
    assert partition_of(key, partitions) == expected
    assert partition_of(key.encode(), partitions) == expected


@given(st.text(), st.integers(1, 40))
def test_it_is_the_partition_with_the_highest_hash(key: str, partitions: int) -> None:
    scores = [xxh3_64_intdigest(key.encode(), seed=partition) for partition in range(partitions)]
    assert scores[partition_of(key, partitions)] == max(scores)


@given(st.text(), st.integers(1, 40))
def test_one_more_partition_moves_a_key_only_into_the_new_one(key: str, partitions: int) -> None:
    before, after = partition_of(key, partitions), partition_of(key, partitions + 1)
    assert after in (before, partitions)
