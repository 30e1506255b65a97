from __future__ import annotations

from topics.server.cors import NO_CORS, Cors

PREFLIGHT = {"origin": "https://app", "access-control-request-method": "PUT"}


def test_off_says_nothing() -> None:
    assert NO_CORS.headers({"origin": "https://app"}) == b""
    assert not NO_CORS.is_preflight("OPTIONS", PREFLIGHT)


def test_a_named_origin_is_named_back_and_others_are_not() -> None:
    cors = Cors(frozenset({"https://app"}))
    assert b"Access-Control-Allow-Origin: https://app\r\n" in cors.headers({"origin": "https://app"})
    for headers in ({"origin": "https://app.evil"}, {"origin": "null"}, {}):
        assert cors.headers(headers) == b"Vary: Origin\r\n"


def test_a_star_is_any_origin() -> None:
    assert b"Access-Control-Allow-Origin: https://x\r\n" in Cors(frozenset({"*"})).headers({"origin": "https://x"})


def test_what_a_preflight_is_and_what_it_is_told() -> None:
    cors = Cors(frozenset({"https://app"}))
    assert cors.is_preflight("OPTIONS", PREFLIGHT)
    assert not cors.is_preflight("GET", PREFLIGHT)
    assert not cors.is_preflight("OPTIONS", {"origin": "https://app"})
    assert dict(cors.preflight_headers(PREFLIGHT))[b"Access-Control-Allow-Methods"]
    assert cors.preflight_headers(PREFLIGHT | {"origin": "https://other"}) == ()
