"""Comparing a recovered engine with the history of the one before it.

`audit` raises `AssertionError` with the log and what is wrong with it, or answers what became of the commands that
were on their way. It changes nothing. `adopt` makes what was found the new beginning of the history, so that a test
can go on and crash again; `probe` then asks again what was asked before, and expects the first answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from topics.core import config as configs
from topics.core.commands import Abort, Append, Command, Configure, Drop, Publish, Stage
from topics.engine.engine import Engine
from topics.errors import StageNotFound
from topics.model import Durability, Published, Written
from topics.testing.history import Asked, History, Known, Line, Row, Seen, look, predict, written

Do = Callable[[Command], object]


@dataclass(slots=True)
class Findings:
    """What a recovery left of each log."""

    seen: dict[tuple[str, int], Seen] = field(default_factory=dict)
    kept: dict[tuple[str, int], int] = field(default_factory=dict)
    """The index of the link that was found, counted as in `Line.seen` and beyond."""
    published: dict[tuple[str, int], bool] = field(default_factory=dict)
    """For each log that a batch was on its way to: whether it arrived."""


def audit(history: History, engine: Engine, *, power_lost: bool, now_ms: int) -> Findings:
    findings = Findings()
    names = {topic.name for topic in engine.machine.topics}
    allowed = history.topics.keys() | history.newborn.keys()
    assert names <= allowed, f"topics that nobody made, or that were dropped: {sorted(names - allowed)}"
    for name, known in history.topics.items():
        if _topic_is_right(engine, name, known):
            for line in history.lines.values():
                if line.topic == name:
                    _audit_line(history, engine, line, power_lost, now_ms, findings)
    for name, asked in history.newborn.items():
        _audit_newborn(engine, name, asked)
    arrived = set(findings.published.values())
    assert len(arrived) <= 1, f"a batch is in some topics and not in others: {findings.published}"
    if history.publishing is not None and history.publishing.acked:
        assert arrived <= {True}, f"a batch that was acked is not there: {history.publishing.command}"
    _audit_stages(history, engine)
    return findings


def _topic_is_right(engine: Engine, name: str, known: Known) -> bool:
    """Whether the topic is there, as it should be."""
    found = engine.machine.topics.get(name)
    drops = [asked for asked in known.waiting if isinstance(asked.command, Drop)]
    if found is None:
        assert drops, f"{name}: the topic is gone"
        return False
    assert not any(asked.acked for asked in drops), f"{name}: the topic was dropped and is back"
    assert found.epoch == known.epoch, f"{name}: epoch {found.epoch}, was {known.epoch}"
    possible = [known.config]
    for asked in known.waiting:
        if isinstance(asked.command, Configure):
            change = configs.merge if asked.command.merge else configs.replace
            possible.append(change(name, possible[-1], asked.command.fields))
            if asked.acked:
                possible = possible[-1:]
    assert found.config in possible, f"{name}: config {found.config}, acked was {known.config}"
    return True


def _audit_newborn(engine: Engine, name: str, asked: Asked) -> None:
    found = engine.machine.topics.get(name)
    if found is None:
        assert not asked.acked, f"{name}: creating it was acked, and it is not there"
        return
    seen = look(engine, name, 0, 0)
    expected: Sequence[Row] = ()
    if isinstance(asked.command, Append):
        expected = predict(asked.command.records, 1, asked.now_ms)
        assert seen.rows or not asked.acked, f"{name}: created by a write that was acked and is gone"
    assert not seen.rows or list(seen.rows) == list(expected), f"{name}: nobody wrote {seen.rows}"


def _audit_line(
    history: History, engine: Engine, line: Line, power_lost: bool, now_ms: int, findings: Findings
) -> None:
    seen = look(engine, line.topic, line.partition, 0)
    key = (line.topic, line.partition)
    findings.seen[key] = seen
    if seen.config.durability is Durability.EPHEMERAL:
        _audit_ephemeral(line, seen)
        findings.kept[key] = len(line.seen) - 1 if len(seen.rows) == len(line.seen[-1].rows) else 0
        return
    links = list(line.links())
    batch = _batch_for(history, line)
    first = line.promised
    lossy = power_lost and seen.config.durability is not Durability.FSYNC
    if not lossy:
        acked = max(at for at, (_, acked) in enumerate(links) if acked)
        links, first = links[acked:], first + acked
    for at in reversed(range(len(links))):
        link = links[at][0]
        later = [one for one, _ in links[at + 1 :]] if lossy else []
        rows = link.fresh(now_ms)
        if _same(rows, seen.rows, later):
            findings.kept[key] = first + at
            if batch:
                findings.published[key] = False
            break
        if batch and _same(rows, seen.rows[: -len(batch)], later) and _is_batch(batch, seen.rows[-len(batch) :]):
            findings.kept[key] = first + at
            findings.published[key] = True
            skipped = range(link.head_seq + 1, seen.rows[-len(batch)].seq)
            link = replace(link, rows=seen.rows, head_seq=seen.rows[-1].seq, told=link.told | set(skipped))
            break
    else:
        raise AssertionError(_difference(line, seen, [link for link, _ in links], now_ms))
    _audit_numbers(history, line, seen, link, power_lost)


def _same(expected: tuple[Row, ...], found: tuple[Row, ...], later: list[Seen]) -> bool:
    if expected == found:
        return True
    missing = set(expected) - set(found)
    if not later or tuple(row for row in expected if row not in missing) != found:
        return False
    return all(any(row not in link.rows for link in later) for row in missing)


def _batch_for(history: History, line: Line) -> list[bytes]:
    """What a batch that is on its way brings to a log."""
    if history.publishing is None:
        return []
    assert isinstance(history.publishing.command, Publish)
    rows: list[Row] = []
    for name in history.publishing.command.stages:
        for part in history.stages[name]:
            assert isinstance(part.command, Stage)
            if (part.command.topic, part.command.partition) == (line.topic, line.partition):
                rows += predict(part.command.records, 1, 1)
    return [_content(row) for row in rows]


def _is_batch(batch: list[bytes], rows: tuple[Row, ...]) -> bool:
    return [_content(row) for row in rows] == batch


def _content(row: Row) -> bytes:
    """A record without what the engine gave it."""
    fields = msgspec.json.decode(row.text, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: value for name, value in fields.items() if name not in ("$seq", "$ts")})


def _audit_ephemeral(line: Line, seen: Seen) -> None:
    ever = {row for link in line.seen for row in link.rows}
    assert set(seen.rows) <= ever, f"{line.name}: nobody wrote {set(seen.rows) - ever}"
    assert seen.head_seq >= line.head_kept, f"{line.name}: head {seen.head_seq} is below the kept {line.head_kept}"


def _audit_numbers(history: History, line: Line, seen: Seen, link: Seen, power_lost: bool) -> None:
    reserved = seen.config.durability in (Durability.FSYNC, Durability.DISK)
    acked_head = max([line.seen[-1].head_seq, *(_last_acked(asked) for asked in line.waiting)])
    if reserved:
        assert seen.head_seq >= acked_head, f"{line.name}: head {seen.head_seq}, and {acked_head} was acked"
    assert seen.head_seq >= link.head_seq, f"{line.name}: head {seen.head_seq}, with records up to {link.head_seq}"
    if not power_lost and not history.power_was_lost:
        assert seen.head_seq == link.head_seq, f"{line.name}: head {seen.head_seq} where {link.head_seq} was written"
    assert seen.evict_floor >= link.evict_floor, f"{line.name}: the evict floor went back to {seen.evict_floor}"
    assert seen.earliest_seq >= link.earliest_seq, f"{line.name}: earliest seq went back to {seen.earliest_seq}"
    gap = set(range(link.head_seq + 1, seen.head_seq + 1))
    expected = {seq for seq in link.told | gap if seq >= seen.evict_floor}
    assert expected <= seen.told, f"{line.name}: a reader is not told of {_ranges(expected - seen.told)}"
    if seen.evict_floor == link.evict_floor:
        extra = {seq for seq in seen.told - expected if seq > seen.earliest_seq}
        assert not extra, f"{line.name}: told as lost, and were not: {_ranges(extra)}"


def _last_acked(asked: Asked) -> int:
    return asked.reply.last_seq if asked.acked and isinstance(asked.reply, Written) else 0


def _audit_stages(history: History, engine: Engine) -> None:
    found = engine.machine.batches.stages
    leaving = [asked for asked in (history.publishing, history.aborting) if asked is not None]
    for name in found:
        left = any(asked.acked and name in _stages_of(asked) for asked in leaving)
        assert name in history.stages and not left, f"stage {name} was published or aborted, and is back"
    for name, parts in history.stages.items():
        acked = sum(p.command.records.count for p in parts if p.acked and isinstance(p.command, Stage))
        counts = [0]
        for part in parts:
            assert isinstance(part.command, Stage)
            counts.append(counts[-1] + part.command.records.count)
        if any(name in _stages_of(asked) for asked in leaving):
            continue
        count = found[name].log.count if name in found else 0
        assert count >= acked and count in counts, f"stage {name} holds {count} records, {acked} were acked"


def _stages_of(asked: Asked) -> tuple[str, ...]:
    return asked.command.stages if isinstance(asked.command, Publish | Abort) else ()


def _difference(line: Line, seen: Seen, links: list[Seen], now_ms: int) -> str:
    def brief(rows: Sequence[Row]) -> str:
        return _ranges({row.seq for row in rows}) or "nothing"

    expected = "; or ".join(brief(link.fresh(now_ms)) for link in links)
    return (
        f"{line.name} ({seen.config.durability}): holds {brief(seen.rows)} (head {seen.head_seq}, "
        f"floor {seen.evict_floor}) where it must hold {expected}"
    )


def _ranges(seqs: set[int]) -> str:
    parts: list[list[int]] = []
    for seq in sorted(seqs):
        if parts and parts[-1][1] + 1 == seq:
            parts[-1][1] = seq
        else:
            parts.append([seq, seq])
    return ", ".join(f"{first}-{last}" if first < last else str(first) for first, last in parts)


def adopt(history: History, engine: Engine, findings: Findings, *, power_lost: bool, ticks_ns: int) -> None:
    """What was recovered is durable: the past of every log is what was found."""
    history.power_was_lost |= power_lost
    history.newborn = {}
    for name in [name for name in history.topics if engine.machine.topics.get(name) is None]:
        del history.topics[name]
    history.lines = {key: line for key, line in history.lines.items() if key in findings.seen}
    for topic in engine.machine.topics:
        history.topics[topic.name] = Known(topic.epoch, topic.config)
        for partition in range(topic.config.partitions):
            key = (topic.name, partition)
            line = history.lines.setdefault(key, Line(*key, topic.epoch, []))
            arrived = [asked for asked in line.waiting if findings.kept.get(key, 0) >= len(line.seen)]
            line.keyed = [(0, asked) for at, asked in line.keyed if at <= findings.kept.get(key, 0)]
            line.keyed += [(0, asked) for asked in arrived if asked.acked and _is_keyed(asked.command)]
            line.waiting, line.seen, line.promised = [], [], 0
            seen = look(engine, *key, ticks_ns)
            line.see(seen)
            line.head_kept = 0 if seen.config.durability is Durability.EPHEMERAL else seen.head_seq
    found = engine.machine.batches.stages
    for name in list(history.stages):
        if name not in found:
            del history.stages[name]
        else:
            _cut_stage(history.stages[name], found[name].log.count)
    history.publishing = history.aborting = None


def _is_keyed(command: Command) -> bool:
    return isinstance(command, Append) and command.dedupe_key is not None


def _cut_stage(parts: list[Asked], count: int) -> None:
    """Keep what the stage really holds."""
    total = 0
    for at, part in enumerate(parts):
        assert isinstance(part.command, Stage)
        if total == count:
            del parts[at:]
            return
        total += part.command.records.count
        part.acked = True


def probe(history: History, do: Do, now_ms: int) -> None:
    """Ask again: keys, batches and stages still answer as they did."""
    for line in list(history.lines.values()):
        config = line.seen[-1].config
        if config.durability is Durability.EPHEMERAL:
            continue
        for _, asked in list(line.keyed):
            if asked.now_ms + config.idempotency_window_ms <= now_ms:
                continue
            first = written(asked)
            again = do(asked.command)
            assert isinstance(again, Written) and again.deduped and again.seqs == first.seqs, (
                f"{line.name}: {asked.command} was answered {first} and then {again}"
            )
    for publish, answer in list(history.published):
        again = do(publish)
        assert isinstance(again, Published) and again.deduped and again.written == answer.written, (
            f"{publish} was answered {answer} and then {again}"
        )
    for stage in history.gone_stages:
        try:
            do(Publish((stage,), f"probe-{stage}", 1))
        except StageNotFound:
            continue
        raise AssertionError(f"stage {stage} was published or aborted, and could be published again")
