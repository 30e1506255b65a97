"""Replaying a WAL that may be damaged: every readable fact, on whatever the facts before it left.

What cannot be read is judged when all that can be has been applied, because what comes behind it tells most:

- A log that has records behind the bad bytes shows by their seqs what is missing; it becomes a hole by itself.
- A log that has none may have had its last records there. If the bytes still tell whose entries they were, it is those
  logs; if not, every log of the shard. As many seqs as the bytes can have held are never assigned again.
- If facts of the meta log are among them, logs that nothing has created are those of lost topics.
"""

from __future__ import annotations

from collections.abc import Collection

from topics.core.derive import Derivation, LostCopies
from topics.core.facts import (
    Appended,
    BatchDecided,
    BatchFinished,
    LeaseFact,
    LogFact,
    MetaFact,
    ProducerForgotten,
    SeqsSkipped,
    SourcesChanged,
    StageDropped,
    StageOpened,
    TopicConfigured,
    TopicCreated,
    TopicDropped,
    parse_log_fact,
    parse_meta_fact,
)
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.registry import META_LOG_ID
from topics.core.routerfacts import RouterGone, RouterPut
from topics.engine.findings import Findings, Kind
from topics.engine.losttopics import LostTopics, made_up_name
from topics.engine.namesakes import Namesakes, shape
from topics.engine.remains import OnBytes
from topics.engine.suspects import RECORD_BYTES_MIN, Suspect, suspects
from topics.errors import Damaged
from topics.limits import BATCH_RECORDS_MAX
from topics.model import Reason, TopicType
from topics.storage import frame
from topics.storage.fs import FileSystem
from topics.storage.walfile import parse_name
from topics.storage.walrecovery import WalRecovery, not_understood
from topics.storage.walscan import Loss

COPIES_BYTES_MIN = 64
"""What a fact about copies takes in the WAL, at least."""


class Replay:
    def __init__(
        self,
        fs: FileSystem,
        recovery: WalRecovery,
        machine: Machine,
        positions: dict[int, int],
        topics: LostTopics,
        found: Findings,
        file_bytes: int,
        trusted: bool,
    ) -> None:
        """`trusted`: the snapshot is whole, so that what it does not name does not exist."""
        self.meta_lost = False
        self._fs = fs
        self._derivation = Derivation(machine, self._apply)
        self._recovery = recovery
        self._machine = machine
        self._positions = positions
        self._topics = topics
        self._found = found
        self._file_bytes = file_bytes
        self._trusted = trusted
        self._namesakes = Namesakes(machine, trusted)
        self._appended_after: dict[int, int] = {}
        """How many losses were known when a log's last readable record came."""
        self.unsettled: set[int] = set()
        """Logs that may have lost facts which are no records: what they undid, ended or handed out is not known."""
        self.adopted: set[int] = set()
        """Logs that are made again from their facts: they may be of a topic, or of a stage, that is gone."""
        self._orphans: dict[int, list[tuple[int, int, bytes]]] = {}
        """Facts of logs that nothing has created: position, kind and body."""

    def run(self, on_bytes: OnBytes) -> None:
        done_bytes = 0
        for log_id, position, kind, body in self._recovery.replay():
            now_bytes, _ = self._recovery.progress
            if now_bytes != done_bytes:
                on_bytes(now_bytes - done_bytes)
                done_bytes = now_bytes
            try:
                self._take(log_id, position, kind, body)
            except frame.UNREADABLE as error:
                raise not_understood(self._recovery.directory, log_id, position, error) from error
        on_bytes(self._recovery.progress[1] - done_bytes)
        self._judge()

    @property
    def appended(self) -> Collection[int]:
        """The logs that have records in the WAL."""
        return self._appended_after.keys()

    @property
    def lost_copies(self) -> list[LostCopies]:
        """What routers brought whose payload is nowhere."""
        return self._derivation.lost

    def lose_all(self) -> None:
        """There is no WAL at all, although there should be one."""
        self._lose_meta()
        self._found.notes.append("the deletes that were in the WAL are lost with it")
        self.unsettled.update(self._machine.logs)
        for log in self._machine.logs.values():
            _skip(self._machine, log, self._file_bytes)

    def _take(self, log_id: int, position: int, kind: int, body: memoryview) -> None:
        if kind == frame.Kind.APPENDED or log_id == META_LOG_ID:
            self._appended_after[log_id] = len(self._recovery.losses)
        if log_id == META_LOG_ID:
            self._apply_meta(parse_meta_fact(body))
            self._derivation.born()
        elif (log := self._machine.logs.get(log_id)) is not None:
            self._take_in(log, kind, body)
        else:
            self._derivation.take_ghost(log_id, kind == frame.Kind.APPENDED, body)
            self._orphans.setdefault(log_id, []).append((position, kind, bytes(body)))
            return
        self._positions[log_id] = position

    def _take_in(self, log: Log, kind: int, body: memoryview) -> None:
        if kind != frame.Kind.APPENDED:
            self._derivation.take_fact(log, body)
        elif log.log_id in self._derivation.aside:
            self._derivation.take_appended(log, body)
        else:
            self._apply(log, body)

    def _apply(self, log: Log, fact: LogFact | bytes | memoryview) -> None:
        """A fact of a log; what a segment holds already is left alone."""
        if not isinstance(fact, bytes | memoryview):
            if not (isinstance(fact, SeqsSkipped) and fact.gap_to < log.next_seq):
                log.apply(fact)
            return
        appended = Appended.parse(memoryview(fact))
        if appended.records.first_seq >= log.next_seq:
            log.apply_appended(appended)
        else:
            log.remember(appended)

    def _apply_meta(self, fact: MetaFact) -> None:
        """A fact about topics and batches, as far as what it builds on is there."""
        machine, batches = self._machine, self._machine.batches
        match fact:
            case TopicCreated():
                self._namesakes.create(fact)
                return
            case TopicConfigured():
                topic = machine.topics.named(fact.topic)
                if topic is None:
                    self._topics.configured[fact.topic] = fact.config
                    return
                if not self._trusted:
                    shape(machine, topic, fact.config)
            case SourcesChanged():
                if machine.topics.named(fact.topic) is None:
                    self._found.notes.append(f"the sources of topic {fact.topic} are lost with the topic itself")
                    return
            case TopicDropped():
                existing = machine.topics.named(fact.topic)
                if existing is None:
                    self._topics.configured.pop(fact.topic, None)
                else:
                    self._namesakes.drop(existing)
                return
            case BatchDecided():
                missing = [stage for stage in fact.stages if stage not in batches.stages]
                if missing:
                    self._found.notes.append(f"stages {missing} of a batch of {fact.producer_id} are lost")
                    fact = BatchDecided(
                        fact.producer_id, fact.epoch, [s for s in fact.stages if s in batches.stages], fact.decided_ms
                    )
            case BatchFinished():
                if (fact.producer_id, fact.epoch) not in batches.by_producer:
                    stages: list[str] = []
                    batches.apply(machine, BatchDecided(fact.producer_id, fact.epoch, stages, fact.finished_ms))
            case StageOpened() | StageDropped() | ProducerForgotten() | RouterPut() | RouterGone():
                pass
        machine.apply_meta(fact)

    # ---- what cannot be read

    def _judge(self) -> None:
        """Turn losses into findings, and keep every seq from being assigned twice."""
        self._namesakes.finish()
        losses = self._recovery.losses
        told = [self._suspects(loss) for loss in losses]
        for index, (loss, known) in enumerate(zip(losses, told, strict=True)):
            if not (self._trusted or loss.end or loss.whole_file):
                continue  # a jump over what the lost snapshot covered
            damage = Damaged(loss.message, file=loss.file, offset=loss.offset)
            self._found.add(Kind.WAL, damage, "facts behind it are kept, the seqs it held become a hole")
            named = {log_id for log_id, _, _ in loss.at_risk}
            named |= {suspect.log_id for suspect in known} if known is not None else self._in_doubt(index, loss)
            if META_LOG_ID in named:
                self._lose_meta()
            if known is None:
                self.unsettled |= {log_id for log_id, _, _ in loss.at_risk} | self._of_shard(loss)
        self._adopt_orphans()
        self._derivation.finish()
        for index, (loss, known) in enumerate(zip(losses, told, strict=True)):
            if known is not None:
                for suspect in known:
                    self._doubt(loss, suspect, self._appended_after.get(suspect.log_id, 0) > index)
            elif loss.end or loss.whole_file:
                self._found.notes.append(f"{loss.file} offset {loss.offset}: deletes may be lost with these bytes")
                lost_bytes = loss.end - loss.offset if loss.end else self._file_bytes
                for log_id in self._in_doubt(index, loss) - {META_LOG_ID}:
                    _skip(self._machine, self._machine.logs[log_id], lost_bytes)

    def _suspects(self, loss: Loss) -> list[Suspect] | None:
        """The entries that stood in unreadable bytes; None when the bytes do not tell, or not what can be."""
        if not loss.end:
            return None
        mapping = self._fs.map(loss.file)
        try:
            found = suspects(mapping.view, loss.offset, loss.end)
        finally:
            mapping.release()
        missing = {
            (log_id, position)
            for other in self._recovery.losses
            for log_id, first, last in other.at_risk
            for position in range(first, min(last, first + len(found or ())) + 1)
        }
        tails = dict(self._recovery.tails)
        for suspect in found or ():
            place = (suspect.log_id, suspect.position)
            if suspect.position == tails.get(suspect.log_id, self._positions.get(suspect.log_id, 0)) + 1:
                tails[suspect.log_id] = suspect.position
            elif place not in missing:
                return None
        return found

    def _doubt(self, loss: Loss, suspect: Suspect, appended_behind: bool) -> None:
        """A lost entry whose owner is known; what was appended behind it shows the gap by itself."""
        log = self._machine.logs.get(suspect.log_id)
        if log is None:
            return
        if not suspect.appended:
            self.unsettled.add(suspect.log_id)
            self._found.notes.append(f"{loss.file} offset {loss.offset}: a delete in topic {log.topic} may be lost")
            if not appended_behind:
                _skip_copies(self._machine, log, 1)
        elif not appended_behind:
            log.add_hole(log.next_seq, log.next_seq + suspect.records_max - 1, Reason.DAMAGE)
        self._positions[log.log_id] = max(self._positions.get(log.log_id, 0), suspect.position)

    def _in_doubt(self, index: int, loss: Loss) -> set[int]:
        """Bytes that tell nothing: the logs of the shard that have nothing behind them may have had something there."""
        parsed = parse_name(loss.file.rpartition("/")[2])
        if parsed is None or not (loss.end or loss.whole_file):
            return set()
        _, number = parsed
        concerned = self._of_shard(loss)
        if loss.whole_file:
            return concerned - self._recovery.logs_behind(parsed[0], number)
        return {log_id for log_id in concerned if self._appended_after.get(log_id, 0) <= index}

    def _of_shard(self, loss: Loss) -> set[int]:
        """All logs that may have had something in a loss."""
        parsed = parse_name(loss.file.rpartition("/")[2])
        shards = self._recovery.shards_on_disk
        if parsed is None or not (loss.end or loss.whole_file):
            return set()
        return {log_id for log_id in (META_LOG_ID, *self._machine.logs) if log_id % shards == parsed[0]}

    def _lose_meta(self) -> None:
        if not self.meta_lost:
            self.meta_lost = True
            self._found.notes.append("a topic that was created, configured or dropped in the lost bytes may be wrong")

    def _adopt_orphans(self) -> None:
        """Facts of logs that do not exist: of no account in a healthy directory, of lost topics in a damaged one."""
        machine, orphans = self._machine, self._orphans
        machine.next_log_id = max([machine.next_log_id, *(log_id + 1 for log_id in orphans)])
        for log in machine.dropped_logs:
            orphans.pop(log.log_id, None)
        if not self.meta_lost and self._trusted:
            return
        names = list(self._topics.configured)
        for log_id in sorted(orphans):
            name = names[0] if len(names) == len(orphans) == 1 else made_up_name(log_id)
            is_queue = any(_tells_of_jobs(*fact) for fact in orphans[log_id])
            log = self._topics.restore(name, log_id, kind=TopicType.QUEUE if is_queue else TopicType.LOG)
            log.kept = []
            self.adopted.add(log_id)
            for position, kind, body in orphans[log_id]:
                self._take_in(log, kind, memoryview(body))
                self._positions[log_id] = position


def _tells_of_jobs(_: int, kind: int, body: bytes) -> bool:
    """Whether a fact is one that only a queue has."""
    return kind != frame.Kind.APPENDED and isinstance(parse_log_fact(body), LeaseFact)


def _skip(machine: Machine, log: Log, lost_bytes: int) -> None:
    """Pass over as many seqs as so many bytes can have held."""
    log.add_hole(log.next_seq, log.next_seq + lost_bytes // RECORD_BYTES_MIN, Reason.DAMAGE)
    _skip_copies(machine, log, lost_bytes // COPIES_BYTES_MIN + 1)


def _skip_copies(machine: Machine, log: Log, facts: int) -> None:
    """Where routers lead, a fact of a few bytes may have brought many records."""
    if machine.routers.source_of(log.topic) is not None:
        log.add_hole(log.next_seq, log.next_seq + facts * BATCH_RECORDS_MAX - 1, Reason.DAMAGE)
