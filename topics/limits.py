"""Every fixed bound, once, checked against the others at import.

What an operator may change is in `settings.py`; a bound here follows from a format, a protocol or from what a bounded
thing may cost. A setting that is itself bounded (the size of a batch, of a record) names its bound here.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

U16_MAX: Final = 2**16 - 1
U32_MAX: Final = 2**32 - 1
U64_MAX: Final = 2**64 - 1

SECOND_MS: Final = 1000
HOUR_MS: Final = 3600 * SECOND_MS
DAY_MS: Final = 24 * HOUR_MS

# Names

NAME_BYTES_MAX: Final = 255
"""A topic's or router's name. Names are ASCII, so bytes and characters are the same."""

# Records and batches: the largest values their settings accept, and the defaults

BATCH_RECORDS_DEFAULT: Final = 10_000
BATCH_RECORDS_MAX: Final = U16_MAX
"""A block numbers its node names with 16 bits, 0 being none, and every record of a batch may bring its own."""

BODY_BYTES_DEFAULT: Final = 64 * MIB
BODY_BYTES_MAX: Final = 1 * GIB
"""A whole write request as received."""

RECORD_BYTES_DEFAULT: Final = 1 * MIB
RECORD_BYTES_MAX: Final = 256 * MIB
"""The data and meta of one record as received."""

META_BYTES_DEFAULT: Final = 16 * KIB
META_BYTES_MAX: Final = 1 * MIB
META_KEYS_MAX: Final = 64

TAG_BYTES_DEFAULT: Final = 256
TAG_BYTES_MAX: Final = 4 * KIB

NODE_BYTES_DEFAULT: Final = 128
NODE_BYTES_MAX: Final = 1 * KIB

NESTING_MAX: Final = 512
"""How deep arrays and objects may stand in each other inside one record's data."""

RECORD_TEXT_OVERHEAD_BYTES_MAX: Final = 128
"""What the wire-ready text of a record adds to data, meta and node: `$seq`, `$ts`, keys, braces and a comma."""

JSON_ESCAPE_FACTOR_MAX: Final = 6
"""A byte of a node may become `\\u00XX` in the text."""

# Blocks, frames and logs

BLOCK_TEXT_BYTES: Final = 256 * KIB
"""Neighbouring blocks are joined up to this much text; a single larger batch stays one block."""

BLOCK_RECORDS: Final = 4096
"""Neighbouring blocks are joined up to this many records."""

TAIL_BATCH_RECORDS_MAX: Final = 512
TAIL_BATCH_BYTES_MAX: Final = 64 * KIB
"""A batch larger than either becomes a run of its own instead of being copied into the growing tail."""

BLOCK_TEXT_BYTES_MAX: Final = U32_MAX
"""A block counts its text with 32 bits."""

BLOCK_RECORD_COLUMNS_BYTES_MAX: Final = 4 * 5 + 2
"""Five 32-bit columns and a 16-bit one a record, see `core/block.py`."""

FRAME_BODY_BYTES_MAX: Final = U32_MAX
"""A frame counts its body with 32 bits, and one batch is one frame."""

HOLES_MAX: Final = 65_536
"""Separate seq ranges of one log that are known to be lost."""

VOLATILE_RANGES_MAX: Final = 1024
"""Separate seq ranges of one log that came while its topic was ephemeral, and are still there."""

CEILING_RESERVE_MIN: Final = 64
CEILING_RESERVE_MAX: Final = 1 << 20
"""How far ahead of its head a disk-class log may ack between two syncs; what a power loss may skip."""

STAGE_ID_BYTES_MAX: Final = 128
STAGES_MAX: Final = 16_384
STAGES_PER_BATCH_MAX: Final = 4096

PUBLISHED_ANSWERS_MAX: Final = 65_536
PUBLISHED_KEPT_MS: Final = 1 * DAY_MS
"""How many answers to a publish are kept, and how long, so that a repeated one gets the first answer. The answer to the
newest epoch of a producer is kept for good, and not counted here."""

PACKED_TEXT_BYTES_MAX: Final = 4 * MIB
"""A log with less to seal shares a segment with others."""
PACKS_MAX: Final = 16
"""So many small segments are let be before they are merged."""

BACKUP_FLAGS_MAX: Final = 16 * MIB
"""Deletions that a running backup undoes in its copies, eight bytes each; one that would need more is ended."""

PARTITIONS_MAX: Final = 1024
PARTITION_CACHE_KEYS_MAX: Final = 16_384
"""Remembered answers to "which partition is this key in"."""

# Reads

WAIT_MS_MAX: Final = 30 * SECOND_MS
"""The longest a read waits for something to tell; a longer wait is clamped to it."""

FRESH_READ_MS: Final = 250
"""The longest a read waits for what routers and dead letters bring to its topic; then it gets what is there."""
FRESH_READS_MAX: Final = 16_384
"""Reads that wait for that at a time; one more gets what is there."""

LIMIT_DEFAULT: Final = 256
"""Records in one page or batch, unless the reader says otherwise."""
BYTE_BUDGET_DEFAULT: Final = 1 * MIB
BYTE_BUDGET_MAX: Final = 8 * MIB
"""Payload bytes in one page or batch, beyond its first record; a larger budget is clamped to it."""

ARROW_RECORDS_MAX: Final = 65_536
"""Records in one page as an Arrow stream, whose cost hardly grows with their number."""

PAGE_SIZE_DEFAULT: Final = 100
PAGE_SIZE_MAX: Final = 1000
"""Entries in one page of a list; a larger page is clamped to it."""

# Watching

BATCH_BYTES_DEFAULT: Final = 256 * KIB
"""Payload bytes in one batch for a watcher that does not say."""
HEARTBEAT_MS_DEFAULT: Final = 15 * SECOND_MS
HEARTBEAT_MS_MIN: Final = 1 * SECOND_MS
HEARTBEAT_MS_MAX: Final = 60 * SECOND_MS
WS_REQUEST_ID_CHARS_MAX: Final = 256
WS_PUBLISHES_MAX: Final = 64
"""Publishes of one WebSocket that are under way at once; no more are read before some are answered."""
WS_PING_MS: Final = 20 * SECOND_MS
"""How often a WebSocket's client is asked whether it is there; who says nothing until the next time is dropped."""
STREAM_TOKEN_MS_MIN: Final = 1 * SECOND_MS
STREAM_TOKEN_MS_DEFAULT: Final = 600 * SECOND_MS
STREAM_TOKEN_MS_MAX: Final = 1 * DAY_MS
STREAM_TOKEN_TOPICS_MAX: Final = 16
"""Names in one stream token, which has to fit into an address."""
MATCHED_TOPICS_MAX: Final = 10_000
"""Logs that one watcher follows, those that its wildcards found included."""

# Requests on their way in

HEADERS_MAX: Final = 256
"""Headers of one request; each takes some hundred bytes beside its text."""
OPEN_BODY_BYTES_MAX: Final = 64 * KIB
"""The body of a request that needs no key on a server with keys: a sign-in is a few hundred bytes."""
UNKNOWN_INCOMING_BYTES_MAX: Final = 32 * MIB
"""Unfinished requests of all connections that have not shown a good key, together."""
INCOMING_BYTES_DEFAULT: Final = 256 * MIB
GRPC_CALLS_MAX: Final = 4096
"""Calls over gRPC that are under way at a time, beside the streams that a setting bounds."""
WS_FRAGMENTS_MAX: Final = 16_384
"""Frames that one WebSocket message may come in."""

# Config

PRIORITY_MIN: Final = -1000
PRIORITY_MAX: Final = 1000
LEASE_MS_MIN: Final = 100
LEASE_MS_MAX: Final = 1 * DAY_MS
LEASE_MS_DEFAULT: Final = 30 * SECOND_MS
CLAIM_JITTER_MS_MAX: Final = 5 * SECOND_MS
IDEMPOTENCY_WINDOW_MS_DEFAULT: Final = 120 * SECOND_MS
PROTECT_MAX_BYTES_DEFAULT: Final = 1 * GIB
"""What a partition may hold for archives and groups beyond its TTL and caps."""
PROTECT_GROUPS_MAX: Final = 64
ARCHIVES_MAX: Final = 16
"""Archives that report their progress in one topic."""
ARCHIVE_LOCATION_BYTES_MAX: Final = 2 * KIB

# Queues

CLAIM_MAX_DEFAULT: Final = 1000
CLAIM_MAX_MAX: Final = 100_000
"""Jobs in one claim, ack, nack or extend."""
CLAIM_BYTES_MAX: Final = 8 * MIB
"""Text of the jobs that are handed out together; a single larger one is handed out alone."""
CLAIMERS_MAX: Final = 65_536
"""Workers that wait for jobs at one time."""
NACK_DELAY_MS_MAX: Final = 1 * DAY_MS
CLAIM_WAIT_MS_MAX: Final = 30 * SECOND_MS
"""The longest a claim waits for a job; a longer wait is clamped to it."""
DEAD_LETTERS_PER_PASS_MAX: Final = 256
"""Jobs that one pass over the claimers moves to the dead-letter topic; the next one goes on."""
DEAD_LETTER_RETRY_MS: Final = 1 * SECOND_MS
"""How long a job rests that its dead-letter topic does not take."""
MOVE_BYTES_MAX: Final = 8 * MIB
"""Payload of dead letters that move together; a single larger one moves alone."""
RESULT_PARTS_MAX: Final = 64
"""Topics that the results of completed jobs may go to in one commit."""
REDRIVE_SCANNED_MAX: Final = 4096
"""Dead letters that one step of a redrive looks at."""
REDRIVE_STEP: Final = 256
"""Dead letters that move in one commit, unless a redrive is slower than that."""
REDRIVE_RATE_MAX: Final = 1_000_000
"""The highest rate that a redrive may be held to, in dead letters a second."""
REDRIVE_CALL_MS_MAX: Final = 10 * SECOND_MS
"""How long one request to redrive works; the next one goes on."""

# Consumer groups

GROUP_LIMIT_DEFAULT: Final = 100
"""Records in one consume, unless it says otherwise."""
GROUP_VISIBILITY_MS_DEFAULT: Final = 60 * SECOND_MS
GROUPS_MAX: Final = 1024
"""Groups in one partition."""
GROUP_RANGES_MAX: Final = 16_384
"""Ranges that a group keeps apart in one partition: claims, and what was acked or given back among them."""
GROUP_LOSSES_MAX: Final = 1024
"""Losses that a group keeps apart until it was told of them."""
GROUP_CLAIMS_PUSHED_MAX: Final = 64
"""Batches that a stream of a group has under way at most."""
GROUP_SHOWN_MAX: Final = 100
"""Ranges and members that the state of a group shows."""

# Heaps

HEAP_TOP_K_DEFAULT: Final = 100
HEAP_LEASE_MS_DEFAULT: Final = 300 * SECOND_MS
HEAP_IDEMPOTENCY_WINDOW_MS_DEFAULT: Final = 600 * SECOND_MS
"""How long the answer to a batch is remembered by its transaction id."""
HEAP_MAX_RETRIES_DEFAULT: Final = 3
HEAP_PAYLOAD_BYTES_DEFAULT: Final = 1 * MIB
HEAP_PAYLOAD_BYTES_MAX: Final = 128 * MIB
"""The payload of one message as received; bytes take a third more in their record."""
HEAP_RECORD_BYTES_MAX: Final = HEAP_PAYLOAD_BYTES_MAX // 3 * 4 + META_BYTES_MAX
HEAP_REPLICATION_MAX: Final = 16
HEAP_BACKOFF_MS_MIN: Final = 1 * SECOND_MS
HEAP_BACKOFF_MS_MAX: Final = 300 * SECOND_MS
"""How long a message rests after a delivery that failed, at most: doubled from the one to the other."""
HEAP_DELAY_MS_MAX: Final = 365 * DAY_MS
"""How far ahead a message may be delayed, or an override may put its next delivery."""
HEAP_REASON_CHARS_MAX: Final = 512
"""Of what a consumer says about a delivery that failed; the rest is cut off."""
HEAP_HISTORY_MAX: Final = 8
"""Failed deliveries that are remembered of one message, the last ones."""
HEAP_BATCH_MESSAGES_MAX: Final = 10_000
"""Messages in one batch."""
HEAP_BATCH_BYTES_MAX: Final = 64 * MIB
"""Payload of one batch."""
HEAP_IN_FLIGHT_DEFAULT: Final = 1_000_000
"""Messages of one heap that are leased at a time."""
HEAP_LEASES_DEFAULT: Final = 10_000
"""Messages of one heap that one consumer has at a time."""
HEAP_PEEK_DEFAULT: Final = 100
HEAP_PEEK_MAX: Final = 1000
HEAP_PRIORITY_BUCKETS_DEFAULT: Final = 32
HEAP_PRIORITY_BUCKETS_MAX: Final = 256
HEAP_PRIORITIES_CHECKED_MAX: Final = 4096
"""Waiting pairs of a partition that are looked at one by one to leave out those that stand for nothing any more."""
HEAP_RUN_MESSAGES: Final = 65_536
"""Waiting messages that one sorted run of a heap's order holds at most."""
HEAP_YOUNG_MESSAGES: Final = 4096
"""Waiting messages that are not in a run yet."""
HEAP_YOUNG_BATCH_MAX: Final = 512
"""Messages that come together and are more than this are a run at once."""
TRANSACTION_ID_BYTES_MAX: Final = 100

# SQL

SQL_BYTES_MAX: Final = 1 * MIB
"""The longest text of statements."""
SQL_WORDS_MAX: Final = 50_000
"""Words, numbers, quoted texts and signs of one; reading them takes a second or so. Long values count as one each."""
SQL_STATEMENTS_MAX: Final = 1000
SQL_PARAMETERS_MAX: Final = 10_000
SQL_LIST_DEPTH_MAX: Final = 32
"""Lists in each other in one parameter of a query; Arrow has no type for 64 of them."""
SOURCES_MAX: Final = 256
"""Pairs of a table and an operation whose changes go to one topic."""
SOURCE_EXPRESSION_BYTES_MAX: Final = 4 * KIB

# Accounts

USERS_MAX: Final = 10_000
MANAGED_KEYS_MAX: Final = 10_000
MANAGED_KEY_NAME_CHARS_MAX: Final = 100
MANAGED_KEY_PREFIXES_MAX: Final = 64
MANAGED_KEY_FORGOTTEN_MS: Final = 30 * DAY_MS
"""For so long a key that was revoked or has expired is still shown."""
SESSIONS_PER_USER_MAX: Final = 20
"""The oldest ends when one more begins."""
EMAIL_CHARS_MAX: Final = 254
AUDIT_BYTES_MAX: Final = 256 * MIB
"""Of the copy of the audit log that is a topic; the files keep everything."""
AGENT_CHARS_MAX: Final = 200

# Tables and pipelines

TABLES_MAX: Final = 1000
TABLE_COLUMNS_MAX: Final = 4096
TABLE_OPTIONS_MAX: Final = 32
LOCATION_BYTES_MAX: Final = 4 * KIB
PIPELINES_MAX: Final = 1000
PIPELINE_BYTES_MAX: Final = 64 * KIB
"""The longest definition of a pipeline."""
PIPELINE_READS_MAX: Final = 64
"""Streams and tables that one pipeline reads."""
TRIGGER_MS_MAX: Final = 24 * 3600 * SECOND_MS
REPORT_ROUTES_MAX: Final = 1000
"""Routes that a runner reports on in one go."""
REPORT_TEXT_CHARS_MAX: Final = 4000
"""What is kept of an error or a position that a runner reports."""
REPORT_LINES_MAX: Final = 1000
"""Lines of log in one report, and lines kept of one pipeline."""
REPORT_STORED_MS: Final = 10 * SECOND_MS
"""How often a report is stored while nothing but numbers changes."""
REPORT_TAKEN_MS: Final = 15 * SECOND_MS
"""For so long after a report a pipeline is its runner's."""
REPORT_LOST_MS: Final = 30 * SECOND_MS
"""A runner that says nothing for so long is thought to be gone."""

# Routers

STEP_RECORDS_MAX: Final = 65_536
"""Records of the source that one step of a router takes, or as many as one more block has."""

# Queries

QUERY_SLACK_BYTES: Final = 32 * MIB
"""What a query process may take beyond the memory of its query: batches on their way to it, and stacks of threads."""

QUERIES_WAITING_MAX: Final = 1024
QUERIES_WAITING_PER_KEY_MAX: Final = 256
"""SELECTs that wait for a free process, of all keys and of one; more are refused."""

# Deduplication

IDEMPOTENCY_KEY_CHARS_MAX: Final = 256
PRODUCER_ID_BYTES_MAX: Final = 128
PRODUCER_WINDOW_MS: Final = 1 * DAY_MS
"""How long what a producer wrote is remembered by (producer_id, epoch, sequence)."""

PRODUCER_RUN_SPAN_MS: Final = PRODUCER_WINDOW_MS // 96
"""A producer's writes are remembered in runs that share one expiry; a run covers at most this long."""

PRODUCERS_MAX: Final = 131_072
"""Producers whose newest epoch is kept for good: so many that publish batches, and so many in each partition."""

DEDUPE_KEYS_MAX: Final = 1_048_576
"""Idempotency keys and producers remembered by one partition; about 250 bytes each."""

DEDUPE_RUNS_MAX: Final = 4_194_304
"""Runs of all producers remembered by one partition; 32 bytes each."""

DEDUPE_EXPIRED_PER_WRITE_MAX: Final = 4
"""Dead entries dropped by one write, so that dropping keeps ahead of adding and no write pays for many."""

# The clock: see `steadyclock.py`

CLOCK_LOOK_MS: Final = 100
"""Time between two looks at the wall clock, while anything asks for the time at all."""

CLOCK_STEP_MS: Final = 1000
"""A larger change against the steady clock is a jump."""

CLOCK_DOUBT_MS: Final = 300 * SECOND_MS
"""How long a wall clock that jumped must keep to its new time before it is believed."""

CLOCK_SLEW_PARTS: Final = 5
"""Time runs faster or slower by one part in so many, to close a gap to the wall clock."""

assert NAME_BYTES_MAX <= U16_MAX
assert BATCH_RECORDS_DEFAULT <= BATCH_RECORDS_MAX <= U16_MAX
assert BODY_BYTES_DEFAULT <= BODY_BYTES_MAX
assert RECORD_BYTES_DEFAULT <= RECORD_BYTES_MAX < BODY_BYTES_MAX
assert RECORD_BYTES_DEFAULT < BODY_BYTES_DEFAULT
assert META_BYTES_DEFAULT <= META_BYTES_MAX <= RECORD_BYTES_MAX
assert META_BYTES_DEFAULT <= RECORD_BYTES_DEFAULT
assert TAG_BYTES_DEFAULT <= TAG_BYTES_MAX
assert NODE_BYTES_DEFAULT <= NODE_BYTES_MAX <= U16_MAX, "a block's name table counts a name with 16 bits"
assert BLOCK_TEXT_BYTES <= BLOCK_TEXT_BYTES_MAX
assert TAIL_BATCH_RECORDS_MAX <= BLOCK_RECORDS and TAIL_BATCH_BYTES_MAX <= BLOCK_TEXT_BYTES
assert BLOCK_RECORDS <= BATCH_RECORDS_MAX

BATCH_TEXT_BYTES_MAX: Final = BODY_BYTES_MAX + BATCH_RECORDS_MAX * (
    RECORD_TEXT_OVERHEAD_BYTES_MAX + JSON_ESCAPE_FACTOR_MAX * NODE_BYTES_MAX
)
"""The wire-ready text of the largest batch; one `node` for a whole batch is written into each record."""

assert BATCH_TEXT_BYTES_MAX <= BLOCK_TEXT_BYTES_MAX, "the largest batch fits one block"
assert (
    BATCH_TEXT_BYTES_MAX + BATCH_RECORDS_MAX * (BLOCK_RECORD_COLUMNS_BYTES_MAX + TAG_BYTES_MAX + NODE_BYTES_MAX)
    < FRAME_BODY_BYTES_MAX
), "the largest block fits one frame"

assert BATCH_BYTES_DEFAULT <= BYTE_BUDGET_DEFAULT <= BYTE_BUDGET_MAX
assert HEARTBEAT_MS_MIN < HEARTBEAT_MS_DEFAULT < HEARTBEAT_MS_MAX
assert CEILING_RESERVE_MIN < CEILING_RESERVE_MAX
assert STAGES_PER_BATCH_MAX <= STAGES_MAX
assert PRIORITY_MIN < 0 < PRIORITY_MAX
assert LEASE_MS_MIN < LEASE_MS_DEFAULT < LEASE_MS_MAX
assert IDEMPOTENCY_WINDOW_MS_DEFAULT <= PRODUCER_WINDOW_MS
assert PRODUCER_WINDOW_MS % PRODUCER_RUN_SPAN_MS == 0
assert PRODUCERS_MAX <= DEDUPE_KEYS_MAX <= DEDUPE_RUNS_MAX
assert DEDUPE_EXPIRED_PER_WRITE_MAX >= 2, "fewer would let dead entries pile up"
assert CLAIM_MAX_DEFAULT <= CLAIM_MAX_MAX
assert CLAIM_WAIT_MS_MAX <= WAIT_MS_MAX
assert REDRIVE_STEP <= REDRIVE_SCANNED_MAX
assert GROUP_LIMIT_DEFAULT <= CLAIM_MAX_DEFAULT
assert LEASE_MS_MIN < HEAP_LEASE_MS_DEFAULT < LEASE_MS_MAX
assert HEAP_PAYLOAD_BYTES_DEFAULT <= HEAP_PAYLOAD_BYTES_MAX and HEAP_RECORD_BYTES_MAX <= RECORD_BYTES_MAX
assert HEAP_BACKOFF_MS_MIN < HEAP_BACKOFF_MS_MAX < HEAP_DELAY_MS_MAX
assert HEAP_BATCH_MESSAGES_MAX <= BATCH_RECORDS_MAX and HEAP_BATCH_BYTES_MAX <= BODY_BYTES_MAX
assert HEAP_YOUNG_BATCH_MAX < HEAP_YOUNG_MESSAGES < HEAP_RUN_MESSAGES
assert HEAP_PEEK_DEFAULT <= HEAP_PEEK_MAX
assert HEAP_PRIORITY_BUCKETS_DEFAULT <= HEAP_PRIORITY_BUCKETS_MAX
assert LEASE_MS_MIN < GROUP_VISIBILITY_MS_DEFAULT < LEASE_MS_MAX
assert QUERIES_WAITING_PER_KEY_MAX <= QUERIES_WAITING_MAX
assert CLOCK_LOOK_MS < CLOCK_STEP_MS < CLOCK_DOUBT_MS and CLOCK_LOOK_MS >= CLOCK_SLEW_PARTS
