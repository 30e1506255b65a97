from __future__ import annotations

import pytest

from topics import settings
from topics.errors import Forbidden, InvalidSetting
from topics.server.hostnames import AllowedHosts, is_loopback_name, name_in

LOOPBACK = [
    *("localhost", "localhost:4000", "LOCALHOST", "localhost.", "Localhost.:80", "a.localhost", "ip6-localhost"),
    *("127.0.0.1", "127.0.0.1:4000", "127.8.8.8", "[::1]", "[::1]:4000", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]"),
]
FOREIGN = [
    *("evil.example", "evil.example:4000", "localhost.evil.example", "localhostx", "127.0.0.1.evil.example"),
    *("evil.example.", "128.0.0.1", "192.168.1.4", "[::2]", "[::ffff:10.0.0.1]", "0.0.0.0"),
    *("", ":4000", "localhost:", "localhost:x", "localhost:99999", "localhost..", ".", "::1", "[localhost]"),
    *(
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/x",
        "localhost, evil.example",
        "local host",
        "[::1",
    ),
]


def allowed(keys: bool = False, **values: settings.Value) -> AllowedHosts | None:
    return AllowedHosts.of(settings.build(values), keys)


def accepts(hosts: AllowedHosts | None, host: str | None, target: str | None = None) -> bool:
    if hosts is None:
        return True
    try:
        hosts.check(host, target)
    except Forbidden as error:
        assert error.detail["field"] == "host"
        return False
    return True


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_names_are_accepted_without_keys(host: str) -> None:
    assert accepts(allowed(), host)


@pytest.mark.parametrize("host", FOREIGN)
def test_foreign_names_are_refused_without_keys(host: str) -> None:
    assert not accepts(allowed(), host)


def test_absolute_target_is_checked_beside_host() -> None:
    assert accepts(allowed(), "localhost", "127.0.0.1:4000")
    assert not accepts(allowed(), "localhost", "evil.example")
    assert not accepts(allowed(), "evil.example", "localhost")
    assert not accepts(allowed(), None, "evil.example")


def test_request_without_host_is_accepted() -> None:
    assert accepts(allowed(), None), "only HTTP/1.0 gets here without one, which no browser speaks"


def test_listed_names_are_accepted_beside_loopback_names() -> None:
    hosts = allowed(allowed_hosts=" Topics.Example.com , *.internal,10.0.0.7,[fd00::7]")
    good = ("topics.example.com:80", "TOPICS.example.com.", "a.internal", "a.b.internal", "10.0.0.7", "[fd00::7]:80")
    bad = ("xtopics.example.com", "internal", "a.internal.evil.example", "10.0.0.8", "evil.example")
    assert all(accepts(hosts, host) for host in (*good, "localhost"))
    assert not any(accepts(hosts, host) for host in bad)


def test_star_accepts_any_name() -> None:
    assert allowed(allowed_hosts="*") is None


def test_keys_lift_the_check_unless_names_are_listed() -> None:
    assert allowed(keys=True) is None
    assert not accepts(allowed(keys=True, allowed_hosts="topics.example.com"), "evil.example")


def test_address_others_reach_accepts_ip_addresses_only() -> None:
    hosts = allowed(host="0.0.0.0", allow_insecure_no_auth=True)
    assert all(accepts(hosts, host) for host in ("192.168.1.4:4000", "[fe80::1]", "localhost"))
    assert not accepts(hosts, "evil.example")
    assert accepts(allowed(host="Topics.lan", allow_insecure_no_auth=True), "topics.lan:4000"), "its own name"


@pytest.mark.parametrize("listed", ["http://a", "a:80", "a/b", "*a", "a.*", "[::1]:80", "a b", "a..b", "@"])
def test_listed_text_that_is_no_name_is_refused(listed: str) -> None:
    with pytest.raises(InvalidSetting, match="TOPICS_ALLOWED_HOSTS") as refused:
        allowed(allowed_hosts=f"good.example,{listed}")
    assert listed in refused.value.message


def test_name_is_read_out_of_an_authority() -> None:
    assert name_in("[::1]:80") == "::1"
    assert name_in("A.b.:1") == "a.b"
    assert not is_loopback_name("localhost.evil")
