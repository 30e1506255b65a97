"""Every `TOPICS_*` setting: its default, its unit, its bounds and its doc line, once.

`Settings` is the table. A field `wal_shards` is the variable `TOPICS_WAL_SHARDS`, the flag `--wal-shards` of `topics
serve` and the key `wal_shards` of its TOML file; a flag goes before a variable, a variable before the file. The help
of `topics serve` and `docs/SETTINGS.md` are generated from it, and `topics settings` shows it with the values in
effect. What is not configurable is in `topics.limits`.

To add a setting, add a field with its `About`, then run `make docs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from os import environ
from typing import Annotated, get_type_hints

from topics import limits
from topics.errors import InvalidSetting
from topics.limits import DAY_MS, GIB, HOUR_MS, KIB, MIB, SECOND_MS
from topics.secret import HIDDEN, Secret

PREFIX = "TOPICS_"
CLIENT_VARIABLES = frozenset({"TOPICS_URL", "TOPICS_API_KEY", "TOPICS_SQL_HISTORY"})
"""Where a client connects, as whom, and what its shell remembers: no settings of an engine."""
LOG_FORMATS = ("auto", "json", "pretty")

Value = str | int | Secret | None

TIB = 1024 * GIB
MINUTE_MS = 60 * SECOND_MS


class Unit(Enum):
    """What a value is, and so how its text is read."""

    PATH = "path"
    TEXT = "text"
    COUNT = "count"
    BYTES = "bytes"
    MS = "ms"
    FLAG = "flag"
    SECRET = "secret"


_SCALES: dict[Unit, dict[str, int]] = {
    Unit.COUNT: {},
    Unit.BYTES: {"TiB": TIB, "GiB": GIB, "MiB": MIB, "KiB": KIB, "B": 1},
    Unit.MS: {"d": DAY_MS, "h": HOUR_MS, "min": MINUTE_MS, "s": SECOND_MS, "ms": 1},
}
_NOUNS = {
    Unit.COUNT: "a whole number",
    Unit.BYTES: "a size like 64MiB or 1.5GiB (B, KiB, MiB, GiB, TiB; a bare number is bytes)",
    Unit.MS: "a duration like 200ms or 1h (ms, s, min, h, d; a bare number is milliseconds)",
}
_FLAGS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_NUMBER = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s*([A-Za-z]*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class About:
    """What the table says of a setting beside its name, type and default."""

    unit: Unit
    doc: str
    minimum: int = 0
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    """The texts that are allowed; empty is any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The values in effect. Making one checks every bound; a bad value raises `InvalidSetting`."""

    data_dir: Annotated[str, About(Unit.PATH, "Directory that holds everything; one process at a time.")] = "./data"
    host: Annotated[str, About(Unit.TEXT, "Address the server binds.")] = "127.0.0.1"
    port: Annotated[int, About(Unit.COUNT, "Port of HTTP, SSE and WebSocket.", maximum=65_535)] = 4000
    grpc_port: Annotated[
        int, About(Unit.COUNT, "Port of gRPC, on the same host; 0 is any that is free.", maximum=65_535)
    ] = 4001
    no_grpc: Annotated[bool, About(Unit.FLAG, "Do not serve heaps over gRPC; they have HTTP as well.")] = False
    grpc_tls_cert: Annotated[
        str | None, About(Unit.PATH, "Certificate chain (PEM) for gRPC over TLS; without one it is not encrypted.")
    ] = None
    grpc_tls_key: Annotated[str | None, About(Unit.PATH, "Private key (PEM) of that certificate.")] = None
    grpc_tls_client_ca: Annotated[
        str | None, About(Unit.PATH, "Certificates (PEM) that clients of gRPC must be signed by; none are asked for.")
    ] = None

    api_keys: Annotated[
        Secret | None,
        About(
            Unit.SECRET,
            "Keys that may call the server: `key[:scopes[:prefixes]]`, separated by commas; without any everybody may.",
        ),
    ] = None
    auth: Annotated[
        bool,
        About(
            Unit.FLAG,
            "Ask everybody for a key or a sign-in, without static keys too; the first start prints a link to set up.",
        ),
    ] = False
    forwarded: Annotated[
        bool,
        About(Unit.FLAG, "Believe X-Forwarded-For and X-Forwarded-Proto: a proxy of yours is in front."),
    ] = False
    allow_insecure_no_auth: Annotated[
        bool, About(Unit.FLAG, "Start without keys on an address that others can reach.")
    ] = False
    probe_auth: Annotated[bool, About(Unit.FLAG, "Ask for a key on the health and readiness probes too.")] = False
    max_inflight_per_key: Annotated[
        int, About(Unit.COUNT, "Requests that one key may have under way at a time; 0 is no cap.")
    ] = 1000
    max_sse_connections: Annotated[
        int, About(Unit.COUNT, "Event streams, WebSockets and gRPC streams open at a time; 0 is no cap.")
    ] = 10_000
    max_sse_connections_per_key: Annotated[
        int, About(Unit.COUNT, "Streams that one key may have open at a time, of any kind; 0 is no cap.")
    ] = 1000
    max_watch_sessions: Annotated[int, About(Unit.COUNT, "Watch sessions at a time; 0 is no cap.")] = 10_000
    max_watch_topics: Annotated[
        int, About(Unit.COUNT, "Topics that one watch may name; a wildcard counts as one.", 1, 10_000)
    ] = 256
    watch_session_ttl_ms: Annotated[
        int, About(Unit.MS, "Time without a stream after which a watch session ends.", 1, DAY_MS)
    ] = 5 * MINUTE_MS
    watch_buffer_bytes: Annotated[
        int,
        About(Unit.BYTES, "Bytes that may wait for a watcher to read them before it is given no more.", KIB, GIB),
    ] = 256 * KIB
    buffer_grace_ms: Annotated[
        int,
        About(Unit.MS, "Time a watcher may read nothing before what it loses meanwhile is told as `from_seq_too_old`."),
    ] = 5 * SECOND_MS
    slow_consumer_timeout_ms: Annotated[
        int, About(Unit.MS, "Time a watcher may read nothing before it is disconnected.", 1, HOUR_MS)
    ] = 30 * SECOND_MS
    stream_token_secret: Annotated[
        Secret | None,
        About(
            Unit.SECRET,
            "Signs stream tokens, at least 16 characters; without one they are good until the server stops.",
        ),
    ] = None
    ws_compression: Annotated[
        bool, About(Unit.FLAG, "Compress WebSocket messages for clients that offer it; each watcher then costs more.")
    ] = False
    throttle_lag_ms: Annotated[
        int, About(Unit.MS, "Event-loop lag above which writes are throttled with 429; 0 never throttles.")
    ] = 500

    cors_origins: Annotated[
        str | None,
        About(Unit.TEXT, "Origins whose web pages may call the server, separated by commas; `*` is any."),
    ] = None
    allowed_hosts: Annotated[
        str | None,
        About(
            Unit.TEXT,
            "Host names that requests may address, separated by commas, beside loopback names; `*.example.com` is all "
            "below it, `*` any. Without keys no others are accepted.",
        ),
    ] = None
    drain_ms: Annotated[
        int, About(Unit.MS, "Time that requests in flight have to finish when the server stops.", 0, HOUR_MS)
    ] = 10 * SECOND_MS
    log_level: Annotated[
        str, About(Unit.TEXT, "Least important log line written.", choices=("debug", "info", "warning", "error"))
    ] = "info"
    log_format: Annotated[
        str, About(Unit.TEXT, "Log lines as JSON or for people; auto asks the terminal.", choices=LOG_FORMATS)
    ] = "auto"
    access_log: Annotated[bool, About(Unit.FLAG, "One log line for each request.")] = False
    otel_endpoint: Annotated[
        str | None,
        About(
            Unit.TEXT,
            "OpenTelemetry collector (OTLP over HTTP) that spans of requests go to, such as `http://localhost:4318`.",
        ),
    ] = None
    otel_service_name: Annotated[
        str | None, About(Unit.TEXT, "Service that spans belong to; without one `OTEL_SERVICE_NAME`, else `topics`.")
    ] = None

    wal_shards: Annotated[int, About(Unit.COUNT, "Write-ahead logs written side by side.", 1, 64)] = 2
    wal_file_bytes: Annotated[
        int, About(Unit.BYTES, "A WAL file is preallocated to this size and rotated when full.", 4 * KIB, 4 * GIB)
    ] = 64 * MIB
    disk_sync_ms: Annotated[
        int, About(Unit.MS, "Longest time from the ack of a `disk` record to its sync.", 1, MINUTE_MS)
    ] = 200
    checkpoint_ms: Annotated[
        int, About(Unit.MS, "Age at which what is written is sealed into segments by a checkpoint.", 1, DAY_MS)
    ] = MINUTE_MS

    segment_bytes: Annotated[int, About(Unit.BYTES, "A segment is sealed at this size.", 4 * KIB, 4 * GIB)] = 64 * MIB
    segment_records: Annotated[int, About(Unit.COUNT, "A segment is sealed at this many records.", 1, 2**32 - 1)] = (
        1_000_000
    )
    hot_bytes: Annotated[int, About(Unit.BYTES, "Memory for payloads that reads are served from.")] = 256 * MIB
    cold_dir: Annotated[
        str | None, About(Unit.PATH, "Directory older sealed segments move to; without one nothing moves.")
    ] = None
    cold_after_ms: Annotated[int, About(Unit.MS, "Age at which a sealed segment moves to the cold directory.")] = (
        7 * DAY_MS
    )

    witness_dir: Annotated[
        str, About(Unit.PATH, "Directory in memory for the note that proves after a kill that the disk lost nothing.")
    ] = "/dev/shm"

    backup_held_bytes: Annotated[
        int,
        About(Unit.BYTES, "Files that nothing needs any more but a running backup; one that holds more is ended."),
    ] = 16 * GIB

    max_batch_records: Annotated[int, About(Unit.COUNT, "Records in one write.", 1, limits.BATCH_RECORDS_MAX)] = (
        limits.BATCH_RECORDS_DEFAULT
    )
    max_record_bytes: Annotated[
        int, About(Unit.BYTES, "Data and meta of one record together.", 1, limits.RECORD_BYTES_MAX)
    ] = limits.RECORD_BYTES_DEFAULT
    max_body_bytes: Annotated[int, About(Unit.BYTES, "Body of one write.", 1, limits.BODY_BYTES_MAX)] = (
        limits.BODY_BYTES_DEFAULT
    )
    max_incoming_bytes: Annotated[
        int,
        About(
            Unit.BYTES,
            "Unfinished bodies and messages of all connections with a good key together; never less than one body.",
            MIB,
        ),
    ] = limits.INCOMING_BYTES_DEFAULT
    max_meta_bytes: Annotated[int, About(Unit.BYTES, "Meta of one record.", 2, limits.META_BYTES_MAX)] = (
        limits.META_BYTES_DEFAULT
    )
    max_tag_bytes: Annotated[int, About(Unit.BYTES, "Tag of one record.", 1, limits.TAG_BYTES_MAX)] = (
        limits.TAG_BYTES_DEFAULT
    )
    max_node_bytes: Annotated[
        int, About(Unit.BYTES, "Node name of one record, and of a worker that claims jobs.", 1, limits.NODE_BYTES_MAX)
    ] = limits.NODE_BYTES_DEFAULT
    max_limit: Annotated[
        int, About(Unit.COUNT, "Records in one read; a larger `limit` is clamped to it.", 1, 100_000)
    ] = 1000
    max_topics: Annotated[int, About(Unit.COUNT, "Topics in this directory; 0 is no cap.")] = 100_000
    max_routers: Annotated[int, About(Unit.COUNT, "Routers in this directory; 0 is no cap.")] = 10_000
    max_claim: Annotated[
        int, About(Unit.COUNT, "Jobs in one claim, ack, nack or extend of a queue.", 1, limits.CLAIM_MAX_MAX)
    ] = limits.CLAIM_MAX_DEFAULT
    heap_max_in_flight: Annotated[
        int, About(Unit.COUNT, "Messages of one heap that are leased at a time; pops wait.", 1)
    ] = limits.HEAP_IN_FLIGHT_DEFAULT
    heap_max_leases: Annotated[int, About(Unit.COUNT, "Messages of one heap that one consumer has at a time.", 1)] = (
        limits.HEAP_LEASES_DEFAULT
    )
    group_visibility_ms: Annotated[
        int,
        About(
            Unit.MS,
            "How long a consumer of a group has what it was handed, unless the topic says otherwise.",
            limits.LEASE_MS_MIN,
            limits.LEASE_MS_MAX,
        ),
    ] = limits.GROUP_VISIBILITY_MS_DEFAULT
    max_total_bytes: Annotated[int, About(Unit.BYTES, "Retained bytes of all topics together; 0 is no cap.")] = 0
    stage_ttl_ms: Annotated[int, About(Unit.MS, "Time after which an unpublished stage expires.", 1)] = HOUR_MS
    max_staged_bytes: Annotated[int, About(Unit.BYTES, "Bytes of all unpublished stages together.", 1)] = 256 * MIB

    sql_timeout_ms: Annotated[int, About(Unit.MS, "Time that one SELECT may take.", 1, HOUR_MS)] = 30 * SECOND_MS
    sql_memory_bytes: Annotated[
        int, About(Unit.BYTES, "Memory that one SELECT may take in its process, its answer included.", 16 * MIB)
    ] = 256 * MIB
    sql_answer_bytes: Annotated[
        int, About(Unit.BYTES, "Bytes of the answers of all SELECTs in one request.", 64 * KIB, GIB)
    ] = 64 * MIB
    sql_rows_max: Annotated[int, About(Unit.COUNT, "Rows in the answer of one SELECT.", 1, 10_000_000)] = 100_000
    sql_queries_max: Annotated[
        int, About(Unit.COUNT, "SELECTs that run at a time, a process each; others wait, keys in turn.", 1, 64)
    ] = 2

    def __post_init__(self) -> None:
        _raise_if(_problems(self))


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    key: str
    about: About
    default: Value
    required: bool

    @property
    def variable(self) -> str:
        return PREFIX + self.key.upper()

    @property
    def flag(self) -> str:
        return "--" + self.key.replace("_", "-")

    def accepts(self) -> str:
        """What would be right, for an error message and the docs."""
        noun = _NOUNS.get(self.about.unit)
        if self.about.choices:
            return f"one of {', '.join(self.about.choices)}"
        if self.about.unit is Unit.FLAG:
            return "true or false"
        if noun is None:
            return f"a {self.about.unit.value}" if self.required else f"a {self.about.unit.value}, or nothing"
        low, high = self.about.minimum, self.about.maximum
        if high is None:
            return f"{noun}, at least {show(low, self.about.unit)}"
        return f"{noun}, from {show(low, self.about.unit)} to {show(high, self.about.unit)}"

    def parse(self, text: str) -> Value:
        """What a variable's text stands for; None, which a number refuses, when it is nothing of this unit."""
        text = text.strip()
        if self.about.unit in _SCALES:
            return parse_number(text, self.about.unit)
        if self.about.unit is Unit.FLAG:
            return _FLAGS.get(text.lower())
        if self.about.unit is Unit.SECRET and text:
            return Secret(text)
        return text or None

    def refuses(self, value: Value) -> bool:
        if self.about.unit is Unit.FLAG:
            return not isinstance(value, bool)
        if self.about.unit is Unit.SECRET:
            return not isinstance(value, Secret | None)
        if self.about.choices and value not in self.about.choices:
            return True
        if self.about.unit not in _SCALES:
            return self.required if not value else not isinstance(value, str)
        if not isinstance(value, int) or isinstance(value, bool):
            return True
        above = self.about.maximum is not None and value > self.about.maximum
        return above or value < self.about.minimum

    def refusal(self, value: object, name: str | None = None) -> str:
        shown = HIDDEN if self.about.unit is Unit.SECRET else value
        return f"{name or self.variable}={shown}: expected {self.accepts()}"


def _table() -> tuple[Setting, ...]:
    hints = get_type_hints(Settings, include_extras=True)
    rows = []
    for field in fields(Settings):
        hint = hints[field.name]
        optional = isinstance(None, hint.__origin__)
        assert field.default is not MISSING
        rows.append(Setting(field.name, hint.__metadata__[0], field.default, not optional))
    return tuple(rows)


def parse_number(text: str, unit: Unit) -> int | None:
    """`64MiB`, `1.5 h` or `10_000` as bytes, milliseconds or a count; None when it is not a whole one of them."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    digits, suffix = found.groups()
    scales = {name.lower(): scale for name, scale in _SCALES[unit].items()}
    scale = scales.get(suffix.lower()) if suffix else 1
    if scale is None:
        return None
    number = Fraction(digits.replace("_", "")) * scale
    return int(number) if number.denominator == 1 else None


def show(value: Value, unit: Unit) -> str:
    """A value in its largest whole unit, in a form that `parse_number` reads back."""
    if value is None:
        return "none"
    if isinstance(value, str | Secret):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    for suffix, scale in _SCALES[unit].items():
        if value and value % scale == 0:
            return f"{value // scale} {suffix}"
    return str(value)


def load(
    variables: Mapping[str, str] = environ,
    flags: Mapping[str, str | bool] | None = None,
    document: Mapping[str, object] | None = None,
) -> Settings:
    """The settings of an environment, a command line and a TOML document. All that is wrong is said at once."""
    values: dict[str, Value] = {}
    wrong = _unknown(document or {})
    for setting in TABLE:
        for name, given in _given(setting, variables, flags or {}, document or {}):
            value = setting.parse(given) if isinstance(given, str) else given
            if not isinstance(value, str | int | Secret | None) or setting.refuses(value):
                wrong[name] = setting.refusal(given, name)
            else:
                values[setting.key] = value
    _raise_if(wrong)
    return build(values)


def origins(
    variables: Mapping[str, str] = environ,
    flags: Mapping[str, str | bool] | None = None,
    document: Mapping[str, object] | None = None,
) -> dict[str, str]:
    """By key, where the value of each setting comes from: a flag, a variable or `file`. A default is not in it."""
    found = {}
    for setting in TABLE:
        for name, _ in _given(setting, variables, flags or {}, document or {}):
            found[setting.key] = "file" if name == setting.key else name
    return found


def _given(
    setting: Setting, variables: Mapping[str, str], flags: Mapping[str, str | bool], document: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    """Everything that is said of a setting, the last word last, each with the name it was said under."""
    if setting.key in document:
        yield setting.key, document[setting.key]
    if setting.variable in variables:
        yield setting.variable, variables[setting.variable]
    if setting.key in flags:
        yield setting.flag, flags[setting.key]


def build(values: Mapping[str, Value]) -> Settings:
    """Settings from keys like `wal_shards`; what is not named keeps its default."""
    _raise_if(_unknown(values))
    # The one place where a checked table meets typed fields: `Settings` refuses a value of another type itself.
    make: type = Settings
    settings = make(**values)
    assert isinstance(settings, Settings)
    return settings


def _unknown(keys: Iterable[str]) -> dict[str, str]:
    unknown = set(keys) - {setting.key for setting in TABLE}
    return {key: f"{key} is not a setting; {_nearest(key)}" for key in sorted(unknown)}


def strangers(variables: Iterable[str]) -> dict[str, str]:
    """`TOPICS_*` names that are no setting, most likely a slip of the pen, each with a hint."""
    known = {setting.variable for setting in TABLE} | CLIENT_VARIABLES
    strange = [name for name in sorted(variables) if name.startswith(PREFIX) and name not in known]
    return {name: _nearest(name.removeprefix(PREFIX).lower()) for name in strange}


def _nearest(key: str) -> str:
    near = get_close_matches(key, [setting.key for setting in TABLE], n=1)
    return f"did you mean {PREFIX}{near[0].upper()}?" if near else "see `topics settings`"


def _problems(settings: Settings) -> dict[str, str]:
    """By variable, why these values cannot be used."""
    wrong: dict[str, str] = {}
    for setting in TABLE:
        value = getattr(settings, setting.key)
        if setting.refuses(value):
            wrong[setting.variable] = setting.refusal(value)
    if wrong:
        return wrong
    if settings.cold_dir is not None and settings.cold_dir.rstrip("/") == settings.data_dir.rstrip("/"):
        variable = PREFIX + "COLD_DIR"
        wrong[variable] = f"{variable}={settings.cold_dir}: expected another directory than {PREFIX}DATA_DIR"
    return wrong


def _raise_if(wrong: Mapping[str, str]) -> None:
    if wrong:
        raise InvalidSetting("\n".join(wrong.values()), settings=list(wrong))


TABLE: tuple[Setting, ...] = _table()
