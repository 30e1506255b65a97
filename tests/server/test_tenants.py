from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.server.principal import ALL_SCOPES, EVERYBODY, Principal
from topics.server.tenants import Tenant, check_producer


def tenant(*prefixes: str, key: str = "key-1") -> Tenant:
    return Tenant.of(Principal(key, ALL_SCOPES, prefixes))


def test_keys_without_prefixes_keep_plain_names() -> None:
    for each in (Tenant.of(EVERYBODY), tenant()):
        assert each.stored("job") == "job" and each.given("job @t1.") == "job @t1." and each.owns("job @t1.")


def test_tenant_is_the_set_of_prefixes_and_not_the_key() -> None:
    same = [tenant("a.", "b."), tenant("b.", "a.", key="key-2"), tenant("b.", "a.", "a.x.", "a.")]
    assert {each.stored("job") for each in same} == {"job @a.|b."}
    assert tenant("a.").stored("job") != tenant("b.").stored("job") != tenant("a.", "b.").stored("job")


def test_no_name_leads_into_another_tenant() -> None:
    mine, other = tenant("t1."), tenant("t2.")
    for name in ("job", "job @t2.", "job @t2. @t1.", " @t2.", "job @t1.", "x" * 128):
        stored = mine.stored(name)
        assert mine.owns(stored) and not other.owns(stored)
        assert len(stored.encode()) <= 128
        if len(name) < 100:
            assert mine.given(stored) == name


def test_long_prefixes_and_names_keep_within_the_bound() -> None:
    many = tenant(*(f"prefix-{number:03d}." for number in range(40)))
    names = ["n" * 128, "n" * 127 + "m", "~" + "n" * 127, "ü" * 64]
    stored = [many.stored(name) for name in names]
    assert len(set(stored)) == len(names) and all(len(each.encode()) <= 128 for each in stored)
    assert stored[2].startswith("~"), "a name that is used once says so in front"
    assert many.stored("job").startswith("job @")


def test_names_that_nothing_may_have_are_left_to_the_engine() -> None:
    assert tenant("t1.").stored("") == "" and tenant("t1.").stored("n" * 129) == "n" * 129


def test_errors_name_things_as_the_client_does() -> None:
    mine, name = tenant("t1."), "job"
    error = InvalidRequest(f'producer "{mine.stored(name)}" is older', producer_id=mine.stored(name), epoch=3)
    with pytest.raises(InvalidRequest, match=r'^producer "job" is older$') as raised, mine.naming((name,)):
        raise error
    assert raised.value.detail == {"producer_id": "job", "epoch": 3}


def test_producer_of_the_engine_is_refused() -> None:
    check_producer("heap-batch")
    with pytest.raises(InvalidRequest, match="belongs to the server"):
        check_producer("heap-batches")
