"""Observing the server for those who look at it: a sample a second, signs of trouble every ten.

Held here are the series, the alerts and the last events; `routes/observing.py` shows them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterable, Sized
from typing import Final

from topics.core.log import Log
from topics.engine.engine import Engine
from topics.model import TopicType
from topics.server.alerts import Alerts, Dead, Lag, Signs
from topics.server.context import Context
from topics.server.logs import fields
from topics.server.sampling import Sampler
from topics.server.series import Series
from topics.server.storagesize import StorageSize, measure

SIGNS_BEATS: Final = 10
LAGS_KEPT: Final = 30
"""Looks that are remembered: five minutes."""
DEAD_KEPT: Final = 60
"""Ten minutes."""
POSITIONS_MAX: Final = 1000
"""Groups, routers, and queues, that are looked at."""
NS_PER_S: Final = 1_000_000_000

log = logging.getLogger(__name__)


class Observer:
    def __init__(self, context: Context, connections: Sized) -> None:
        self._context = context
        self.series = Series()
        self.alerts = Alerts()
        self.storage = StorageSize()
        self.sampler = Sampler(context, connections)
        self._beats = 0
        self._measuring = False
        self._storage_error = ""
        """Why the storage could not be measured last."""
        self._sampled_ns = 0
        self._lags: deque[dict[tuple[str, str, str], int]] = deque(maxlen=LAGS_KEPT)
        self._dead: deque[dict[int, int]] = deque(maxlen=DEAD_KEPT)
        """Of each log: what it has given up."""
        self._used: deque[tuple[int, int]] = deque(maxlen=LAGS_KEPT)
        self._overruns: deque[int] = deque(maxlen=LAGS_KEPT)
        self._clock_jumps: deque[int] = deque(maxlen=LAGS_KEPT)
        self._jumps_logged = 0

    def begin(self, engine: Engine) -> None:
        self.sampler.begin(engine)
        self._sampled_ns = self._context.clock.ticks_ns()
        self._dead.append(_dead_totals(engine.machine.logs.values()))
        self.alerts.note(self._context.clock.now_ms(), "started", "The server is ready.")
        for note in engine.report.notes:
            self.alerts.note(self._context.clock.now_ms(), "mended", note)

    async def beat(self, engine: Engine) -> None:
        """Once a second."""
        clock = self._context.clock
        self._watch_clock(engine)
        self._beats += 1
        if self._beats % SIGNS_BEATS == 1 and not self._measuring:
            await self._look(engine)
        now_ns = clock.ticks_ns()
        elapsed_s = max((now_ns - self._sampled_ns) / NS_PER_S, 0.001)
        self._sampled_ns = now_ns
        self.series.add(clock.now_ms(), self.sampler.sample(engine, elapsed_s, self.storage))

    def _watch_clock(self, engine: Engine) -> None:
        """Also of an engine that nobody asks for anything: what it does not look at it cannot doubt."""
        engine.now_ms()
        if engine.time.jumps > self._jumps_logged:
            self._jumps_logged = engine.time.jumps
            log.warning(
                "the wall clock jumped; the server's time follows it when it keeps to the new time",
                extra=fields(jumped_ms=engine.time.jumped_ms, ahead_ms=engine.time.ahead_ms),
            )

    async def _look(self, engine: Engine) -> None:
        store = engine.store
        self._measuring = True
        try:
            self.storage = await asyncio.to_thread(
                measure, store.fs, store.directory, store.segment_dir, store.tiers.cold_dir
            )
            self._storage_error = ""
        except OSError as error:
            # The other signs matter most now: a disk that cannot be read has stopped shards of the log, too.
            self._storage_error = str(error)
        finally:
            self._measuring = False
        self.alerts.update(self._signs(engine), self._context.clock.now_ms())

    def _signs(self, engine: Engine) -> Signs:
        shards = [engine.wal.metrics(shard) for shard in range(engine.wal.shards)]
        stopped = tuple(number for number, each in enumerate(shards) if each.read_only)
        totals = engine.machine.totals
        self._overruns.append(totals.overrun_count)
        self._clock_jumps.append(engine.time.jumps)
        return Signs(
            free_bytes=self.storage.free_bytes,
            storage_error=self._storage_error,
            bytes_per_s=self._filling(),
            stopped_shards=stopped,
            stop_reason=shards[stopped[0]].last_error if stopped else "",
            checkpoint_error="" if engine.checkpoint_error is None else str(engine.checkpoint_error),
            admitted_share=self._context.throttle.share,
            overrun_count=totals.overrun_count - self._overruns[0],
            overrun_topic=totals.overrun_topic,
            stalled_routers=engine.forwarding.stalled_count,
            clock_jumps=engine.time.jumps - self._clock_jumps[0],
            clock_ahead_ms=engine.time.ahead_ms,
            lags=self._lag_signs(engine),
            dead=self._dead_signs(engine),
        )

    def _filling(self) -> float:
        """Bytes a second by which the data directory has grown in the last minutes.

        What others do on the same file system is not told: a build beside the server is no trend.
        """
        self._used.append((self._context.clock.now_ms(), self.storage.wal_bytes + self.storage.hot_bytes))
        (then_ms, then_bytes), (now_ms, now_bytes) = self._used[0], self._used[-1]
        # A few seconds say nothing: a WAL file that is laid out at once would look like a flood.
        if len(self._used) < LAGS_KEPT // 2 or now_ms <= then_ms:
            return 0.0
        return (now_bytes - then_bytes) * 1000 / (now_ms - then_ms)

    def _lag_signs(self, engine: Engine) -> tuple[Lag, ...]:
        routers = engine.routing.page(limit=POSITIONS_MAX)
        now = {("router", each.router, each.config.source): each.lag_records for each in routers}
        for topic in engine.groups.topics():
            if len(now) >= len(routers) + POSITIONS_MAX:
                break
            for state in engine.groups.list(topic):
                place = ("group", state.group, topic)
                now[place] = now.get(place, 0) + state.lag
        self._lags.append(now)
        before = self._lags[0]
        return tuple(Lag(*place, now=lag, before=before.get(place, lag)) for place, lag in now.items())

    def _dead_signs(self, engine: Engine) -> tuple[Dead, ...]:
        machine = engine.machine
        if not (machine.topics.by_type[TopicType.QUEUE] or machine.topics.by_type[TopicType.HEAP]):
            return ()
        logs = {log_id: machine.logs.get(log_id) for log_id in self._dead[-1]}
        logs |= {log_id: machine.logs.get(log_id) for log_id in list(engine.checkpointer.dirty)[:POSITIONS_MAX]}
        self._dead.append(_dead_totals(log for log in logs.values() if log is not None))
        before, totals, new = self._dead[0], Counter[str](), Counter[str]()
        for log_id, total in self._dead[-1].items():
            topic = machine.logs[log_id].topic
            totals[topic] += total
            # A log that was not there before had no dead letters.
            new[topic] += total - before.get(log_id, 0)
        return tuple(Dead(name, totals[name], count, _is_heap(engine, name)) for name, count in new.items() if count)


def _dead_totals(logs: Iterable[Log]) -> dict[int, int]:
    """What the queues and heaps among logs have given up; most have given up nothing."""
    return {log.log_id: log.queue.dead_lettered for log in logs if log.queue is not None and log.queue.dead_lettered}


def _is_heap(engine: Engine, name: str) -> bool:
    topic = engine.machine.topics.get(name)
    return topic is not None and topic.config.type is TopicType.HEAP
