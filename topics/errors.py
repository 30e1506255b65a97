"""Every error the product reports, with its wire code, HTTP status and gRPC code, once.

TopicsError
├── InvalidRequest              400  invalid_request
│   ├── BatchTooLarge           400  batch_too_large
│   ├── RecordTooLarge          400  record_too_large
│   ├── InvalidSql              400  invalid_sql
│   └── InvalidSetting          400  invalid_setting
├── Unauthorized                401  unauthorized
├── Forbidden                   403  forbidden
├── NotFound                    404  not_found
│   ├── TopicNotFound           404  topic_not_found
│   ├── GroupNotFound           404  group_not_found
│   ├── RouterNotFound          404  router_not_found
│   ├── TableNotFound           404  table_not_found
│   ├── PipelineNotFound        404  pipeline_not_found
│   ├── MessageNotFound         404  message_not_found
│   ├── UserNotFound            404  user_not_found
│   ├── KeyNotFound             404  key_not_found
│   ├── SessionNotFound         404  session_not_found
│   └── StageNotFound           404  stage_not_found
├── MethodNotAllowed            405  method_not_allowed
├── NotAcceptable               406  not_acceptable
├── RequestTimeout              408  request_timeout
├── Conflict
│   ├── TopicExistsIncompatible 409  topic_exists_incompatible
│   ├── TopicExists             409  topic_exists
│   ├── NameTaken               409  name_taken
│   ├── ScriptInterrupted       409  script_interrupted
│   ├── TopicNotEmpty           409  topic_not_empty
│   ├── TopicRecreated          409  topic_recreated
│   ├── RouterCycle             409  router_cycle
│   ├── TableInUse              409  table_in_use
│   ├── PipelineTaken           409  pipeline_taken
│   ├── LastAdmin               409  last_admin
│   ├── NotAQueue               409  not_a_queue
│   ├── NotAHeap                409  not_a_heap
│   ├── MessageLeased           409  message_leased
│   ├── LeaseLost               409  lease_lost
│   ├── ProducerFenced          409  producer_fenced
│   ├── TooManyProducers        409  too_many_producers
│   └── StageConflict           409  stage_conflict
├── ConfirmationNeeded          412  confirmation_needed
├── PayloadTooLarge             413  payload_too_large
├── UnsupportedMediaType        415  unsupported_media_type
├── ExpectationFailed           417  expectation_failed
├── TopicFull                   422  topic_full
├── QueryTooExpensive           422  query_too_expensive
├── UpgradeRequired             426  upgrade_required
├── Throttled                   429  throttled
├── HeadersTooLarge             431  headers_too_large
├── Internal                    500  internal
│   └── Damaged                 500  damaged
│       └── NotUnderstood       500  not_understood
├── NotInstalled                501  not_installed
└── Unavailable
    ├── NotReady                503  not_ready
    ├── ShuttingDown            503  shutting_down
    ├── LogStopped              503  log_stopped
    ├── Deposed                 503  deposed
    ├── BackupInterrupted       503  backup_interrupted
    ├── DirectoryLocked         503  directory_locked
    ├── ConnectionFailed        503  connection_failed
    ├── DatabaseFailed          503  database_failed
    └── TimedOut                504  timed_out
"""

from __future__ import annotations

from typing import Any, ClassVar


class TopicsError(Exception):
    """What was wrong, where, and what would be right; `detail` says it to a program."""

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    grpc_code: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str, **detail: Any) -> None:
        super().__init__(message)
        self.message = message
        self.detail: dict[str, Any] = detail
        self.request_id: str | None = None
        """What the server's log has it under, when a server said it."""


class InvalidRequest(TopicsError):
    code = "invalid_request"
    http_status = 400
    grpc_code = "INVALID_ARGUMENT"


class BatchTooLarge(InvalidRequest):
    code = "batch_too_large"


class RecordTooLarge(InvalidRequest):
    code = "record_too_large"


class InvalidSql(InvalidRequest):
    """A statement that is not understood; `detail` has `line`, `column` and what was `expected`."""

    code = "invalid_sql"


class InvalidSetting(InvalidRequest):
    """One or more `TOPICS_*` settings cannot be used; `detail.settings` names them."""

    code = "invalid_setting"


class Unauthorized(TopicsError):
    """No key, or none that is known."""

    code = "unauthorized"
    http_status = 401
    grpc_code = "UNAUTHENTICATED"


class Forbidden(TopicsError):
    """A known key that lacks the scope, or may not touch the name."""

    code = "forbidden"
    http_status = 403
    grpc_code = "PERMISSION_DENIED"


class NotFound(TopicsError):
    code = "not_found"
    http_status = 404
    grpc_code = "NOT_FOUND"


class TopicNotFound(NotFound):
    code = "topic_not_found"


class GroupNotFound(NotFound):
    code = "group_not_found"


class RouterNotFound(NotFound):
    code = "router_not_found"


class TableNotFound(NotFound):
    code = "table_not_found"


class PipelineNotFound(NotFound):
    code = "pipeline_not_found"


class MessageNotFound(NotFound):
    """No message of a heap has this id: it never was, is done, or was moved to the dead letters."""

    code = "message_not_found"


class UserNotFound(NotFound):
    code = "user_not_found"


class KeyNotFound(NotFound):
    """No managed key has this id."""

    code = "key_not_found"


class SessionNotFound(NotFound):
    """No session of a user has this id, or it is over."""

    code = "session_not_found"


class StageNotFound(NotFound):
    code = "stage_not_found"


class MethodNotAllowed(TopicsError):
    """The path is there, the method is not; `detail.allow` names those that are."""

    code = "method_not_allowed"
    http_status = 405
    grpc_code = "UNIMPLEMENTED"


class NotAcceptable(TopicsError):
    code = "not_acceptable"
    http_status = 406
    grpc_code = "INVALID_ARGUMENT"


class RequestTimeout(TopicsError):
    """The client began a request and did not finish it in time."""

    code = "request_timeout"
    http_status = 408
    grpc_code = "DEADLINE_EXCEEDED"


class Conflict(TopicsError):
    code = "conflict"
    http_status = 409
    grpc_code = "FAILED_PRECONDITION"


class TopicExistsIncompatible(Conflict):
    code = "topic_exists_incompatible"


class TopicExists(Conflict):
    """What was to be made is there already; `detail.type` is its type."""

    code = "topic_exists"
    grpc_code = "ALREADY_EXISTS"


class NameTaken(Conflict):
    """Another topic has this name or alias already; `detail.topic` is that topic."""

    code = "name_taken"


class ScriptInterrupted(Conflict):
    """A statement could not be done now, and those before it are done: nobody may send all of them again.

    `detail.statement` is the first that was not done, `detail.cause` the code of what kept it from that.
    """

    code = "script_interrupted"


class TopicNotEmpty(Conflict):
    code = "topic_not_empty"


class TopicRecreated(Conflict):
    """Meant was an earlier topic of that name; `detail.epoch` is that of the one that is there."""

    code = "topic_recreated"


class RouterCycle(Conflict):
    """Records would come back to where they came from; `detail.cycle` names the topics they would pass."""

    code = "router_cycle"


class TableInUse(Conflict):
    """A registered table is read by routes or pipelines; `detail.topics` and `detail.pipelines` name them."""

    code = "table_in_use"


class PipelineTaken(Conflict):
    """Another runner has the pipeline; `detail.runner` is that one."""

    code = "pipeline_taken"


class LastAdmin(Conflict):
    """Without this user nobody could manage the others any more."""

    code = "last_admin"


class NotAQueue(Conflict):
    """A queue's verb was used on a topic of another type."""

    code = "not_a_queue"


class NotAHeap(Conflict):
    """A heap's verb was used on a topic of another type."""

    code = "not_a_heap"


class MessageLeased(Conflict):
    """Somebody has the message that was to be changed; `detail.lease_deadline_ms` says until when."""

    code = "message_leased"


class LeaseLost(Conflict):
    """A lease that was named is not this holder's, or not any more; `detail` says which. Nothing was changed."""

    code = "lease_lost"


class ProducerFenced(Conflict):
    """A newer epoch of the same producer has already written."""

    code = "producer_fenced"


class TooManyProducers(Conflict):
    """A new producer cannot be remembered for good; one that is no longer used has to be forgotten first."""

    code = "too_many_producers"
    grpc_code = "RESOURCE_EXHAUSTED"


class StageConflict(Conflict):
    """A stage was used for another topic, or published by another producer epoch."""

    code = "stage_conflict"
    grpc_code = "ABORTED"


class ConfirmationNeeded(TopicsError):
    """A call that cannot be undone was not confirmed; `detail.confirmation_token` is what to repeat it with."""

    code = "confirmation_needed"
    http_status = 412
    grpc_code = "FAILED_PRECONDITION"


class PayloadTooLarge(TopicsError):
    code = "payload_too_large"
    http_status = 413
    grpc_code = "RESOURCE_EXHAUSTED"


class UnsupportedMediaType(TopicsError):
    code = "unsupported_media_type"
    http_status = 415
    grpc_code = "INVALID_ARGUMENT"


class ExpectationFailed(TopicsError):
    code = "expectation_failed"
    http_status = 417
    grpc_code = "INVALID_ARGUMENT"


class TopicFull(TopicsError):
    code = "topic_full"
    http_status = 422
    grpc_code = "RESOURCE_EXHAUSTED"


class QueryTooExpensive(TopicsError):
    """A query was ended because it took more time, memory or rows than it may; `detail.limit` says which."""

    code = "query_too_expensive"
    http_status = 422
    grpc_code = "RESOURCE_EXHAUSTED"


class UpgradeRequired(TopicsError):
    """Another protocol is spoken here than HTTP."""

    code = "upgrade_required"
    http_status = 426
    grpc_code = "UNIMPLEMENTED"


class Throttled(TopicsError):
    """A cap was reached; `detail.limit` names it."""

    code = "throttled"
    http_status = 429
    grpc_code = "RESOURCE_EXHAUSTED"


class HeadersTooLarge(TopicsError):
    code = "headers_too_large"
    http_status = 431
    grpc_code = "RESOURCE_EXHAUSTED"


class Internal(TopicsError):
    code = "internal"


class Damaged(Internal):
    """Stored bytes do not match their checksum; `detail` names file, offset and the seqs at risk."""

    code = "damaged"
    grpc_code = "DATA_LOSS"


class NotUnderstood(Damaged):
    """Stored bytes are whole, and this version does not read them: a newer one has written them, and reads them. A
    repair refuses them as well, and nothing is changed."""

    code = "not_understood"


class NotInstalled(TopicsError):
    """What this takes is optional and not there; `detail.install` is the command that gets it."""

    code = "not_installed"
    http_status = 501
    grpc_code = "UNIMPLEMENTED"


class Unavailable(TopicsError):
    code = "unavailable"
    http_status = 503
    grpc_code = "UNAVAILABLE"


class NotReady(Unavailable):
    code = "not_ready"


class ShuttingDown(Unavailable):
    code = "shutting_down"


class LogStopped(Unavailable):
    """A write or sync of this log's WAL shard failed: it serves reads, and acks nothing any more."""

    code = "log_stopped"


class Deposed(Unavailable):
    """The commit log's last position is not the one the writer expected: somebody else owns it."""

    code = "deposed"
    grpc_code = "ABORTED"


class BackupInterrupted(Unavailable):
    """A backup had to let go of the files it was copying; `detail.reason` says for what. Begin it again."""

    code = "backup_interrupted"
    grpc_code = "ABORTED"


class DirectoryLocked(Unavailable):
    code = "directory_locked"
    grpc_code = "FAILED_PRECONDITION"


class ConnectionFailed(Unavailable):
    """The server cannot be reached, or was lost before its answer; `detail.sent`: it may have been carried out."""

    code = "connection_failed"


class DatabaseFailed(Unavailable):
    """A database whose tables are to be read cannot be reached, or went away."""

    code = "database_failed"


class TimedOut(Unavailable):
    """No answer in time; `detail.sent`: the request had gone out, and may have been carried out."""

    code = "timed_out"
    http_status = 504
    grpc_code = "DEADLINE_EXCEEDED"
