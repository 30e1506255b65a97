from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topics.core.leaseid import lease_id, parse_lease_id


@given(st.integers(1, 2**64 - 1))
def test_a_lease_id_names_its_token(token: int) -> None:
    assert parse_lease_id(lease_id(token)) == token


def test_other_texts_name_no_lease() -> None:
    texts = ["", "lease_", "lease_-1", "lease_0x1f", "1f", "lease_ 1", "lease_é", "lease_01", "lease_A"]
    texts.append("lease_" + "1" * 17)
    assert [parse_lease_id(text) for text in texts] == [0] * len(texts)
