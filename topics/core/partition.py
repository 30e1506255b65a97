"""Which partition a key belongs to: rendezvous hashing over XXH3-64, stable for ever and the same in every client.

partition of key = the p in 0 … partitions-1 with the highest XXH3-64(UTF-8 of key, seed = p); on a tie the lowest
"""

from __future__ import annotations

from functools import lru_cache

from xxhash import xxh3_64_intdigest

from topics.limits import PARTITION_CACHE_KEYS_MAX


def partition_of(key: str | bytes, partitions: int) -> int:
    """The partition of a key; a str is its UTF-8 bytes."""
    if partitions == 1:
        return 0
    return _highest(key.encode() if isinstance(key, str) else key, partitions)


@lru_cache(maxsize=PARTITION_CACHE_KEYS_MAX)
def _highest(key: bytes, partitions: int) -> int:
    hashes = [xxh3_64_intdigest(key, partition) for partition in range(partitions)]
    # The first of equals is that of the lowest partition.
    return hashes.index(max(hashes))
