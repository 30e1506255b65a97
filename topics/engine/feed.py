"""A feed: one log that is watched, and the cohorts that follow it.

How it works. `advance` gives each cohort that is behind its next batch: one read of the log, made into events once,
each put into the bytes of a protocol once, and written to all members. A cohort that was given something goes to the
end of the line, so that nobody is passed over when time runs out in between. Where a cohort arrives, it meets those
that are there already. Members that have no room stay behind, parked, and join again when they have.

Nothing is kept between two calls but places: what is delivered is read from the log when there is somebody to take it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from topics.core.cut import cut
from topics.core.log import Log
from topics.core.read import plan_read, text_at_head
from topics.core.registry import Topic
from topics.core.view import View
from topics.engine.cohort import BACKLOG, ELSEWHERE, FRESH, LIVE, Cohort, Group, Place
from topics.engine.events import Event, Form, Kind
from topics.model import Durability, Reason
from topics.wire import watch as wire

if TYPE_CHECKING:
    from topics.engine.watch import Watch
    from topics.engine.watcher import Subscription, Watcher

PART_MEMBERS_MAX = 512
"""A larger cohort is served in parts, and others get a turn in between."""
PART_MEMBERS_MIN = 32
PART_COUNT = 4
"""In a hurry, a cohort is served in about so many parts, none of them smaller than this: what is written between two of
them goes out to the second in the same frame."""
BRIEF_MEMBERS_MAX = 2
"""Those who may be told of a write before its writer is."""

_LOST = (Reason.CAP, Reason.TTL, Reason.MIXED)
"""What somebody who just connected is told as `from_seq_too_old`."""

Events = tuple[list[Event], int]
"""What there is to tell, and the cursor behind it."""


class Waiter:
    """Somebody who waits for one piece of news; `done` is called once, when there is some or never will be."""

    __slots__ = ("above_seq", "done")

    def __init__(self, above_seq: int, done: Callable[[], None]) -> None:
        self.above_seq = above_seq
        self.done = done


class Feed:
    def __init__(self, watch: Watch, topic: Topic, log: Log, key: str) -> None:
        self.topic = topic
        self.log = log
        self.key = key
        self.marked = False
        """Whether it is in the line of those to be looked at, and since when."""
        self.marked_ms = 0
        self.waiting_ms = 0
        """Since when somebody waits for a batch, also behind a full connection; 0 when nobody does."""
        self.gone = False
        """Whether the topic was deleted."""
        self.waiters: list[Waiter] = []
        self._watch = watch
        self._now_ms = 0
        """When it was last looked at."""
        self._groups: dict[tuple[View, Form], Group] = {}
        self._group_count = 0
        self._member_count = 0
        """Subscriptions, parked ones included."""
        self._cohorts: dict[Place, Cohort] = {}
        several = topic.config.partitions > 1
        self._names = (topic.name.encode(), b'"partition":%d,' % log.partition if several else b"")

    # ---- who follows

    @property
    def used(self) -> bool:
        return bool(self._groups or self.waiters)

    def ceiling(self, view: View) -> int:
        """The last seq that may be shown."""
        log = self.log
        if not view.strong or self.topic.config.durability is Durability.EPHEMERAL:
            return log.visible_seq
        return min(log.visible_seq, log.synced_seq)

    def group(self, view: View, form: Form) -> Group:
        """Where a new subscription belongs; it is added next."""
        group = self._groups.get((view, form))
        if group is None:
            self._group_count += 1
            group = self._groups[view, form] = Group(self._group_count, view, form)
            if view.strong:
                self._watch.strong_logs.add(self.log.log_id)
        return group

    def add(self, subscription: Subscription) -> None:
        subscription.group.count += 1
        self._member_count += 1
        # What routers bring here is there before anybody is told to have caught up.
        coming = self._watch.fresh(self.topic.name)
        if coming is None:
            self.join(subscription)
        else:
            coming.on_done(lambda done: self._join_late(subscription))

    def _join_late(self, subscription: Subscription) -> None:
        if subscription.watcher.subscriptions.get(subscription.key) is subscription:
            self.join(subscription)

    def join(self, subscription: Subscription) -> None:
        """Put a subscription where its cursor and phase say, and have a look at it soon."""
        self._put(Cohort(subscription.group, subscription.cursor, subscription.phase, (subscription,)))
        self._watch.mark(self)

    def leave(self, subscription: Subscription) -> None:
        cohort, group = subscription.cohort, subscription.group
        if cohort is not None:
            cohort.members.pop(subscription, None)
            if not cohort.members and self._cohorts.get(cohort.place) is cohort:
                del self._cohorts[cohort.place]
        self._member_count -= 1
        group.count -= 1
        if not group.count:
            del self._groups[group.view, group.form]
            if group.view.strong and not any(each.view.strong for each in self._groups.values()):
                self._watch.strong_logs.discard(self.log.log_id)
        self._watch.release(self)

    def behind(self) -> set[Watcher]:
        """The watchers that there is something for."""
        late = [each for each in self._cohorts.values() if each.cursor < self.ceiling(each.group.view)]
        return {member.watcher for cohort in late for member in cohort.members}

    def _put(self, cohort: Cohort) -> None:
        if not cohort.members:
            return
        there = self._cohorts.get(cohort.place)
        if there is None:
            self._cohorts[cohort.place] = cohort
        elif len(there.members) >= len(cohort.members):
            there.absorb(cohort)
        else:
            cohort.absorb(there)
            self._cohorts[cohort.place] = cohort

    # ---- delivering

    def is_brief(self) -> bool:
        """Whether there are few to tell, and each of them knows all that was there before."""
        if self._member_count + len(self.waiters) > BRIEF_MEMBERS_MAX:
            return False
        return all(cohort.phase == LIVE for cohort in self._cohorts.values())

    def advance(self, deadline_ns: int) -> bool:
        """Give every cohort that is behind its next batch, until the pump is over; whether there is more to do."""
        if self.waiters:
            self.wake()
        if self.gone:
            self._say_deleted()
            return False
        watch = self._watch
        self._now_ms = watch.observe(self.topic, self.log)
        made: dict[tuple[View, int, int], Events] = {}
        more = False
        places = list(self._cohorts)
        for place in places:
            cohort = self._cohorts.get(place)
            if cohort is None:
                continue
            ceiling = self.ceiling(cohort.group.view)
            if cohort.phase == LIVE and cohort.cursor >= ceiling:
                continue
            del self._cohorts[place]
            part = PART_MEMBERS_MAX
            if watch.in_hurry:
                part = min(max(cohort.group.count // PART_COUNT, PART_MEMBERS_MIN), part)
            if len(cohort.members) > part:
                rest, cohort = cohort, cohort.split(part)
                self._put(rest)
                more = True
            more |= self._serve(cohort, ceiling, made)
            self._put(cohort)
            if place is not places[-1] and watch.is_over(deadline_ns):
                return True
        return more

    def _serve(self, cohort: Cohort, ceiling: int, made: dict[tuple[View, int, int], Events]) -> bool:
        """Give a cohort its next batch; whether there is more behind that."""
        if self._watch.blocked_count and not cohort.ready():
            return False
        try:
            events, cursor = self._events(cohort, ceiling, made)
            for event in events:
                self._tell(cohort, event)
            cohort.cursor = cursor
            if cursor < ceiling:
                cohort.phase = BACKLOG
                return True
            if cohort.phase != LIVE:
                text = wire.caught_up_text(*self._names, max(cursor, ceiling))
                self._tell(cohort, Event(kind=Kind.CAUGHT_UP, key=self.key, cursor=cursor, text=text))
                cohort.phase = LIVE
        except Exception as error:
            # The others must not suffer: whoever is here is told, and is here no more.
            for member in list(cohort.members):
                self._fail(member, error)
        return False

    def _tell(self, cohort: Cohort, event: Event) -> None:
        watch = self._watch
        ready = cohort.ready() if watch.blocked_count else list(cohort.members)
        if not ready:
            return
        cohort.cursor = event.cursor
        if cohort.phase < BACKLOG:
            cohort.phase = BACKLOG
        frame = cohort.group.form(event)
        watch.sent_count += len(ready)
        for member in ready:
            try:
                member.send(member, frame)
            except Exception as error:
                self._fail(member, error)

    def _fail(self, member: Subscription, error: Exception) -> None:
        member.watcher.unsubscribe(self.key)
        member.watcher.listener.failed(member, error)

    def _events(self, cohort: Cohort, ceiling: int, made: dict[tuple[View, int, int], Events]) -> Events:
        """What a cohort is told next; read once for all groups that see the same."""
        if len(self._groups) == 1:
            return self._read(cohort.group, cohort.cursor, cohort.phase, ceiling)
        place = (cohort.group.view, cohort.cursor, min(cohort.phase, BACKLOG))
        found = made.get(place)
        if found is None:
            found = made[place] = self._read(cohort.group, cohort.cursor, cohort.phase, ceiling)
        return found

    def _read(self, group: Group, cursor: int, phase: int, ceiling: int) -> Events:
        log, topic, view = self.log, self.topic, group.view
        if group.is_plain and phase != ELSEWHERE:
            body = text_at_head(log, ceiling, cursor, view.limit, view.byte_budget)
            if body is not None:
                return [self._record(body, cursor, ceiling, ceiling)], ceiling
        # A cursor from another life of the topic is as good as one from the future.
        asked = log.head_seq + 1 if phase == ELSEWHERE else cursor
        nodes = view.nodes if topic.config.dedupe_node else ()
        plan = plan_read(log, ceiling, asked, view.limit, view.byte_budget, nodes, view.match)
        events = []
        tombstone = plan.tombstone
        if tombstone is not None:
            recreated = tombstone.reason is Reason.RECREATED
            cursor = min(log.earliest_seq() - 1, ceiling) if recreated else tombstone.gap_to
            reason = "from_seq_too_old" if phase == FRESH and tombstone.reason in _LOST else tombstone.reason.value
            text = wire.tombstone_text(*self._names, tombstone, reason)
            events.append(Event(kind=Kind.TOMBSTONE, key=self.key, cursor=cursor, text=text, lost=tombstone))
        if plan.spans:
            events.append(self._record(cut(plan.spans, view.shape), cursor, plan.next_from_seq, ceiling))
        return events, plan.next_from_seq

    def _record(self, body: bytes, cursor: int, next_cursor: int, ceiling: int) -> Event:
        self.topic.last_read_ts = self._now_ms
        text = wire.record_text(*self._names, body, cursor, next_cursor, ceiling)
        return Event(kind=Kind.RECORD, key=self.key, cursor=next_cursor, text=text, body=body)

    # ---- the end

    def wake(self) -> None:
        """Call those who waited for what is there now."""
        over = self.gone or self._watch.waiting_over
        visible_seq = self.log.visible_seq
        waiting, self.waiters = self.waiters, []
        for waiter in waiting:
            if over or waiter.above_seq < visible_seq:
                waiter.done()
            else:
                self.waiters.append(waiter)
        self._watch.release(self)

    def _say_deleted(self) -> None:
        text = wire.topic_deleted_text(*self._names, self.log.visible_seq)
        for cohort in list(self._cohorts.values()):
            self._tell(cohort, Event(kind=Kind.TOPIC_DELETED, key=self.key, cursor=cohort.cursor, text=text))
            for member in list(cohort.members):
                member.watcher.unsubscribe(self.key)
                member.watcher.listener.ended(member)
                self._watch.reborn(self.topic.name, member.watcher)
