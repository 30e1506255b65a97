from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import topics
from topics import errors, sync

ROOT = Path(__file__).parents[1]

VALUES = ["Discard", "Durability", "Gap", "Page", "Reason", "Record", "Tombstone", "TopicConfig", "TopicType"]
ANSWERS = [
    "Aborted",
    "ArchiveDropped",
    "ArchiveState",
    "Configured",
    "Deleted",
    "Dropped",
    "Published",
    "StageState",
    "TopicState",
    "Written",
]
CURSORS = ["Cursor", "CursorStore", "FileCursors", "MemoryCursors"]
PRODUCERS = ["Delivered", "Delivery", "ForgottenProducer", "Producer", "ProducerState", "TopicProducer"]
JOBS = ["AckedJobs", "CompletedJobs", "ExtendedJobs", "Job", "NackedJobs", "Queue", "QueueState", "Redriven", "Worked"]
JOBS += ["JobLease", "LeasePage", "ReadyJob"]
GROUPS = ["AckedGroup", "DroppedGroup", "ExtendedGroup", "Group", "GroupBatch", "GroupMember", "GroupRange"]
GROUPS += ["GroupState", "NackedGroup", "PausedGroup", "PlacedGroup", "RangeKind"]
HEAPS = [
    "AckedMessages",
    "Cancelled",
    "DeadMessage",
    "DeadStep",
    "Enqueued",
    "EnqueuedBatch",
    "ExtendedLeases",
    "Failure",
]
HEAPS += ["Heap", "HeapConfig", "HeapInfo", "HeapStats", "LostLease", "Message", "MessageState", "Mode", "MovedToDlq"]
HEAPS += ["NackedMessages", "PartitionStats", "PeekedMessage", "PeekedMessages", "Purged", "Reprioritized"]
ROUTERS = ["Guarantee", "Router", "RouterConfig", "RouterDropped", "RouterState"]
TABLES = ["Table", "TableColumn", "TableConfig", "TableDropped", "TableFormat", "TableRoute", "TableState"]
PIPELINES = ["LogLine", "Pipeline", "PipelineCondition", "PipelineConfig", "PipelineDropped", "PipelineKind"]
PIPELINES += ["PipelineOptions", "PipelineOrders", "PipelineReport", "PipelineState", "PipelineStream"]
PIPELINES += ["PipelineTable", "RouteProgress", "RunState"]
SQL = ["SqlColumn", "SqlResult", "SqlTombstone"]
ACCOUNTS = ["Audit", "AuditEntry", "AuditVerdict", "KeyState", "KeyStatus", "Keys", "NewKey", "NewLink", "Role"]
ACCOUNTS += ["SessionEnded", "SessionState", "Sessions", "UserDropped", "UserState", "UserStatus", "Users"]
CLIENTS = ["Client", "Topic", "connect", "open", "sync", "trace_context"]
NAMES = [*VALUES, *ANSWERS, *CURSORS, *PRODUCERS, *JOBS, *GROUPS, *HEAPS, *ROUTERS, *TABLES, *PIPELINES, *SQL, *CLIENTS]
NAMES += [*ACCOUNTS, "errors", "__version__"]

CLIENT_NAMES = [
    "abort",
    "audit",
    "backup",
    "close",
    "follow",
    "forget_producer",
    "heap",
    "heaps",
    "keys",
    "pages",
    "pipeline",
    "pipelines",
    "producer",
    "producers",
    "publish",
]
CLIENT_NAMES += ["queue", "route"]
CLIENT_NAMES += ["router", "routers", "sessions", "sql", "sql_arrow", "stage", "table", "tables", "topic", "topics"]
CLIENT_NAMES += ["users"]
TOPIC_NAMES = [
    "configure",
    "create",
    "delete",
    "diff",
    "drop",
    "drop_archive",
    "follow",
    "group",
    "groups",
    "name",
    "producer",
    "report_archive",
    "state",
]
TOPIC_NAMES += ["write", "write_many"]
GROUP_NAMES = ["ack", "consume", "consumer", "drop", "extend", "nack", "name", "pause", "reset", "resume", "state"]
GROUP_NAMES += ["take", "topic"]
HEAP_NAMES = ["ack", "cancel", "configure", "consumer", "create", "dead_letter", "dead_letters", "delete_dead", "drop"]
HEAP_NAMES += ["enqueue", "enqueue_many", "extend", "info", "move_to_dlq", "nack", "name", "peek", "pop", "purge"]
HEAP_NAMES += ["replay", "reprioritize", "stats", "take"]
MESSAGE_NAMES = [
    "ack",
    "attempts",
    "data",
    "deadline_ms",
    "enqueued_ms",
    "extend",
    "id",
    "is_json",
    "lease_token",
    "lost",
]
MESSAGE_NAMES += ["max_retries", "meta", "nack", "partition", "payload", "priority", "producer", "release", "settled"]
MESSAGE_NAMES += ["topic"]
QUEUE_NAMES = [
    "ack",
    "claim",
    "create",
    "extend",
    "leases",
    "nack",
    "name",
    "node",
    "put",
    "put_many",
    "redrive",
    "run",
    "state",
]
QUEUE_NAMES += ["work"]
ROUTER_NAMES = ["drop", "name", "put", "state"]
JOB_NAMES = ["ack", "complete", "data", "deadline_ms", "deliveries", "extend", "lease_id", "lost", "meta", "nack"]
JOB_NAMES += ["node", "partition", "queue", "seq", "settled", "tag", "ts"]
SYNC_NAMES = [
    "Audit",
    "Client",
    "Delivery",
    "Group",
    "Heap",
    "Job",
    "Keys",
    "Message",
    "Pipeline",
    "Producer",
    "Queue",
    "Router",
    "Sessions",
    "Table",
    "Topic",
]
SYNC_NAMES += ["TopicProducer", "Users", "connect", "open"]
_KINDS = (topics.Client, topics.Topic, topics.Queue, topics.Group, topics.Heap, topics.Message, topics.Job)
_FACES = (sync.Client, sync.Topic, sync.Queue, sync.Group, sync.Heap, sync.Message, sync.Job)


def methods(kind: type) -> list[str]:
    return sorted(name for name in dir(kind) if not name.startswith("_"))


def test_these_names_stay() -> None:
    assert sorted(topics.__all__) == sorted(NAMES)
    assert methods(topics.Client) == CLIENT_NAMES
    assert methods(topics.Topic) == TOPIC_NAMES
    assert methods(topics.Queue) == QUEUE_NAMES
    assert methods(topics.Group) == methods(sync.Group) == GROUP_NAMES
    assert methods(topics.Heap) == methods(sync.Heap) == HEAP_NAMES
    assert methods(topics.Message) == methods(sync.Message) == MESSAGE_NAMES
    assert methods(topics.Router) == ROUTER_NAMES
    assert methods(topics.Job) == JOB_NAMES
    assert sorted(sync.__all__) == SYNC_NAMES


def test_every_name_is_there_and_says_what_it_is() -> None:
    for name in topics.__all__:
        value = getattr(topics, name)
        assert name == "__version__" or inspect.getdoc(value), name
    for kind in (
        topics.Client,
        topics.Topic,
        topics.Queue,
        topics.Group,
        topics.Heap,
        topics.Message,
        topics.Job,
        *_FACES,
    ):
        assert [name for name in methods(kind) if not getattr(kind, name).__doc__] == []


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(topics, "opne")
    assert set(NAMES) <= set(dir(topics))


def test_an_error_is_reached_by_its_name() -> None:
    assert issubclass(errors.DirectoryLocked, errors.TopicsError)
    assert topics.errors is errors


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert topics.__version__ == project["version"]


def test_the_engine_is_loaded_when_it_is_asked_for() -> None:
    code = (
        "import sys, topics; assert 'topics.engine.engine' not in sys.modules; topics.open; "
        "assert 'topics.engine.engine' in sys.modules; from topics import *; print(sync.open, Client)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
