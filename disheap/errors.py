"""The errors of a client, by the canonical code that each stands for. They are those of `topics.errors`."""

from __future__ import annotations

from topics.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LeaseLost,
    NotFound,
    RecordTooLarge,
    StageConflict,
    Throttled,
    TimedOut,
    TopicExists,
    TopicsError,
    Unauthorized,
    Unavailable,
)

DisheapError = TopicsError
"""The parent of all of them; `grpc_code` is the canonical code, `message` says what, where, and what would be right."""
InvalidArgumentError = InvalidRequest
PayloadTooLargeError = RecordTooLarge
NotFoundError = NotFound
AlreadyExistsError = TopicExists
FailedPreconditionError = Conflict
LeaseLostError = LeaseLost
AbortedError = StageConflict
UnauthenticatedError = Unauthorized
PermissionDeniedError = Forbidden
ResourceExhaustedError = Throttled
UnavailableError = Unavailable
DeadlineExceededError = TimedOut

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "DeadlineExceededError",
    "DisheapError",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "LeaseLostError",
    "NotFoundError",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
]
