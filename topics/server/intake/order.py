"""The order in which pipelined requests of one connection begin (RFC 9112, section 9.3.2).

A request begins when all requests before it on its connection are answered, with two exceptions that no client can
notice:

    safe behind safe        both only read, so they may run beside each other
    append behind append    each has its place in the log as soon as it is decided, which it is before the next begins;
                            only the answers wait for the disk, and those go out in order

An append that could not be decided at once (the server has not verified its key yet, the disk is too far behind)
delays the next request like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from topics.server.message import Request


class Order(Enum):
    SAFE = auto()
    APPEND = auto()
    UNSAFE = auto()


# Looking a member up in its enum takes several times as long as comparing it.
SAFE: Final = Order.SAFE
APPEND: Final = Order.APPEND
UNSAFE: Final = Order.UNSAFE

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


OrderOf = Callable[[str, str], Order]
"""The order of requests with a method and a path."""


def may_begin_behind(unanswered: Order, request: Request | None, order: Order) -> bool:
    """Whether a request of this order may begin although `request`, which came before it, is not answered."""
    if order is SAFE:
        return unanswered is SAFE
    return order is APPEND and unanswered is APPEND and request is not None and request.decided


def order_of_method(method: str, path: str) -> Order:
    """The order of a request when only its method is known."""
    return SAFE if method in _SAFE_METHODS else UNSAFE
