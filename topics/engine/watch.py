"""Watching: who follows which logs, and the pump that gives everybody what is new.

How it works. Each log that somebody follows has a `Feed`. When readers can see more of a log, its feed is marked, which
costs one lookup however many are watching. A marked feed waits in a line, and `pump` works through the line, the
highest effective priority first: one batch to each cohort of the feed that is behind, and into the line again while
there is more. So a backlog of higher priority is drained before one of lower priority, and those of equal priority take
turns. Joining marks the feed, too: the state is looked at after somebody has registered, so no wake-up can be missed,
and nobody ever polls.

The priority is computed when a feed comes into the line and every 50 ms again for those that still wait, because
waiting raises it (`urgency.py`). The time that a feed waits behind a full connection counts as well.

A pump that has used its slice of time leaves the rest for the next one, and the loop has its turn in between. Its slice
is half of what the loop took for other things since the last pump, at least a few frames and at most `SLICE_NS`. What
is written meanwhile goes to those who still wait together with what they wait for, so the more there is to do, the less
it takes. A watcher that has waited for a second is told to expect a delay.

On a loop, `delivery.py` runs the pump whenever `wanted` is called. Without one, tests call `pump` themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from topics.core.auditchain import INTERNAL_TOPICS
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.registry import Topic
from topics.core.view import View
from topics.engine.events import Form
from topics.engine.feed import Feed, Waiter
from topics.engine.ticket import Ticket
from topics.engine.urgency import UrgencyLine
from topics.engine.watcher import Listener, Watcher, check_room, key_of
from topics.limits import BYTE_BUDGET_DEFAULT, BYTE_BUDGET_MAX, LIMIT_DEFAULT, MATCHED_TOPICS_MAX

SLICE_NS: Final = 4_000_000
"""How long a pump goes on at most before the loop gets a turn."""
SENDS_AT_ONCE: Final = 32
"""Frames that a pump may send however short its slice is."""
AGING_MS: Final = 50
"""How often those who wait are put into order."""
PACED_MS: Final = 1000
"""Who waits for longer is told so, and again after as long."""


class Watch:
    def __init__(
        self,
        machine: Machine,
        now_ms: Callable[[], int],
        ticks_ns: Callable[[], int],
        mark_dirty: Callable[[int], None],
        limit_max: int,
        grace_ms: int,
    ) -> None:
        self.now_ms = now_ms
        self.ticks_ns = ticks_ns
        self.wanted: Callable[[], None] = lambda: None
        """Called when there is something to pump and there was not."""
        self.fresh: Callable[[str], Ticket | None] = lambda topic: None
        """What somebody who begins to follow a topic waits for; None for nothing."""
        self.grace_ms = grace_ms
        """Who was blocked for so long is told of what it lost meanwhile as if it had just connected."""
        self.pumped_ns = 0
        """When the pump last began: time enough for who asks often."""
        self.sent_count = 0
        """Frames sent by this pump."""
        self.in_hurry = True
        """Whether this pump has less than a whole slice."""
        self.blocked_count = 0
        """Watchers that have no room."""
        self.waiting_over = False
        self.strong_logs: set[int] = set()
        """Logs whose syncs somebody waits for: their `synced` is news, too."""
        self._machine = machine
        self._mark_dirty = mark_dirty
        self._limit_max = limit_max
        self._feeds: dict[int, Feed] = {}
        self._watchers_by_prefix: dict[str, dict[Watcher, None]] = {}
        self._fair_ns = 0
        """When this pump has taken half as long as the loop did since the last one."""
        self._ended_ns = 0
        self._line = UrgencyLine()
        self._news: list[Feed] = []
        """Marked feeds that are not in the line yet."""
        self._asked = False
        """Whether a pump was asked for and has not come yet."""
        self._sorted_ms = 0
        self._paced_ms = 0
        self._pressed = False
        """Whether the last pump left somebody waiting."""

    def __len__(self) -> int:
        """How many logs are watched."""
        return len(self._feeds)

    # ---- watchers

    def open(self, listener: Listener, form: Form) -> Watcher:
        """A watcher without subscriptions. Whoever opens one closes it."""
        return Watcher(self, listener, form)

    def wait(self, log: Log, above_seq: int, done: Callable[[], None]) -> Callable[[], None]:
        """Have `done` called once, when readers see more than `above_seq` or never will. Returns how to give up."""
        waiter = Waiter(above_seq, done)
        feed = self._feed_of(self._machine.topic(log.topic), log)
        feed.waiters.append(waiter)
        self.mark(feed)

        def give_up() -> None:
            if waiter in feed.waiters:
                feed.waiters.remove(waiter)
                self.release(feed)

        return give_up

    def end_waiting(self) -> None:
        """Everybody who waits goes on with what there is; from now on nobody waits."""
        self.waiting_over = True
        for feed in list(self._feeds.values()):
            if feed.waiters:
                self.mark(feed)

    # ---- news

    def note(self, log: Log) -> None:
        """Readers can see more of a log. On the way of every write."""
        feed = self._feeds.get(log.log_id)
        if feed is not None:
            self.mark(feed)

    def mark(self, feed: Feed) -> None:
        if feed.marked:
            return
        feed.marked = True
        feed.marked_ms = self.now_ms()
        if not feed.waiting_ms:
            feed.waiting_ms = feed.marked_ms
        self._news.append(feed)
        self._ask()

    def born(self, log_ids: Iterable[int]) -> None:
        """Logs were created; those of topics that a wildcard matches are followed from their beginning."""
        if not self._watchers_by_prefix:
            return
        for log_id in log_ids:
            log = self._machine.logs[log_id]
            topic = self._machine.topics.get(log.topic)
            # A stage has a log as well, and the name of the topic it is for.
            if topic is None or topic.first_log_id != log_id or topic.name in INTERNAL_TOPICS:
                continue
            # Every beginning of the name: their number does not depend on how many are watching.
            for end in range(len(topic.name) + 1):
                prefix = topic.name[:end]
                for watcher in list(self._watchers_by_prefix.get(prefix, ())):
                    watcher.born(topic, prefix)

    def reborn(self, name: str, watcher: Watcher) -> None:
        """A watcher was told that a topic is gone: if there is a new one by now, a wildcard takes it up."""
        topic = self._machine.topics.get(name)
        if topic is not None:
            for prefix in list(watcher.patterns):
                if name.startswith(prefix):
                    watcher.born(topic, prefix)

    def dropped(self, log_ids: Iterable[int]) -> None:
        """Logs are gone with their topic."""
        for log_id in log_ids:
            feed = self._feeds.pop(log_id, None)
            self.strong_logs.discard(log_id)
            if feed is not None:
                feed.gone = True
                self.mark(feed)

    # ---- the pump

    def is_brief(self) -> bool:
        """Whether all there is to do is to tell one or two of what was just written."""
        return len(self._news) == 1 and not self._line.values and self._news[0].is_brief()

    def pump(self) -> None:
        """Deliver for one slice of time."""
        self._asked = False
        self.sent_count = 0
        now_ns = self.pumped_ns = self.ticks_ns()
        deadline_ns = now_ns + SLICE_NS
        self._fair_ns = now_ns + (now_ns - self._ended_ns) // 2
        self.in_hurry = self._fair_ns < deadline_ns
        aged = self._pressed and self._order()
        line, news = self._line, self._news
        try:
            while news or line.values:
                if len(news) == 1 and not line.values:
                    feed = news.pop()
                else:
                    if news:
                        self._line_up()
                    feed = line.pop()
                feed.marked = False
                more = feed.advance(deadline_ns)
                feed.waiting_ms = feed.marked_ms if feed.marked else 0
                if more:
                    self.mark(feed)
                if (news or line.values) and self.is_over(deadline_ns):
                    break
        finally:
            self._ended_ns = self.ticks_ns()
            self._pressed = bool(news or line.values)
            if self._pressed:
                self._ask()
            else:
                self._sorted_ms = 0
        if aged and self._pressed:
            self._tell_paced()

    def is_over(self, deadline_ns: int) -> bool:
        """Whether the loop has to have a turn now."""
        now_ns = self.ticks_ns()
        return now_ns >= deadline_ns or (now_ns >= self._fair_ns and self.sent_count >= SENDS_AT_ONCE)

    def _line_up(self) -> None:
        """Put what was marked into the line."""
        news = self._news.copy()
        self._news.clear()
        for feed in news:
            if feed.waiters:
                # Waking costs nothing, so a reader that waits for a page need not wait for the backlogs of others.
                feed.wake()
        self._line.join(news, self.now_ms())

    def _order(self) -> bool:
        """Compute the priorities of those who wait again, unless that was done a moment ago."""
        now_ms = self.now_ms()
        if now_ms - self._sorted_ms < AGING_MS:
            return False
        self._sorted_ms = now_ms
        self._line.age(now_ms)
        return True

    def _tell_paced(self) -> None:
        now_ms = self.now_ms()
        if now_ms - self._paced_ms < PACED_MS:
            return
        late = [feed for feed in self._line if now_ms - feed.marked_ms >= PACED_MS]
        if not late:
            return
        self._paced_ms = now_ms
        topics: dict[Watcher, list[str]] = {}
        for feed in late:
            for watcher in feed.behind():
                topics.setdefault(watcher, []).append(feed.topic.name)
        waited_ms = now_ms - min(feed.marked_ms for feed in late)
        for watcher, names in topics.items():
            if not watcher.blocked:
                watcher.listener.paced(names, waited_ms)

    def _ask(self) -> None:
        if not self._asked:
            self._asked = True
            self.wanted()

    # ---- what watchers and feeds need

    def topic(self, name: str) -> Topic | None:
        return self._machine.topics.get(name)

    def find(self, topic_name: str, partition: int) -> tuple[Topic, Log]:
        topic = self._machine.topic(topic_name)
        return topic, self._machine.log(topic, partition)

    def log_of(self, topic: Topic, partition: int) -> Log:
        return self._machine.log(topic, partition)

    def places(self, prefix: str, taken: Collection[str]) -> list[tuple[Topic, int]]:
        """All partitions of the topics whose names begin so, but for those whose keys are taken.

        Raises `Throttled` when they and those taken are more than one watcher may follow.
        """
        found: list[tuple[Topic, int]] = []
        for topic in self._machine.topics.page("", prefix, MATCHED_TOPICS_MAX + 1):
            partitions = range(topic.config.partitions)
            found += [(topic, each) for each in partitions if key_of(topic.name, each) not in taken]
            check_room(len(taken) + len(found), prefix)
        return found

    def expect(self, prefix: str, watcher: Watcher) -> None:
        self._watchers_by_prefix.setdefault(prefix, {})[watcher] = None

    def expect_no_more(self, prefix: str, watcher: Watcher) -> None:
        watchers = self._watchers_by_prefix[prefix]
        del watchers[watcher]
        if not watchers:
            del self._watchers_by_prefix[prefix]

    def fitted(self, view: View) -> View:
        """A view within what is allowed; a limit or a budget of 0 is the default."""
        limit = min(view.limit or LIMIT_DEFAULT, self._limit_max)
        byte_budget = min(view.byte_budget or BYTE_BUDGET_DEFAULT, BYTE_BUDGET_MAX)
        return View(limit, byte_budget, view.nodes, view.match, view.shape, view.strong)

    def feed(self, topic: Topic, partition: int) -> Feed:
        return self._feed_of(topic, self._machine.log(topic, partition))

    def _feed_of(self, topic: Topic, log: Log) -> Feed:
        feed = self._feeds.get(log.log_id)
        if feed is None:
            feed = self._feeds[log.log_id] = Feed(self, topic, log, key_of(topic.name, log.partition))
        return feed

    def release(self, feed: Feed) -> None:
        """Somebody has left: a feed that nobody follows is let go."""
        if not feed.used:
            self._feeds.pop(feed.log.log_id, None)

    def observe(self, topic: Topic, log: Log) -> int:
        """Let time pass for a log that is about to be read; the time it is now."""
        now_ms = self.now_ms()
        log.observe(topic.config, now_ms)
        if log.released:
            self._mark_dirty(log.log_id)
        return now_ms
