"""A watcher: one connection that follows any number of logs, and its subscriptions.

    watcher = engine.watch.open(listener, form)
    watcher.subscribe("jobs", view, from_seq=4096)     # or subscribe_matching("tenant42:", view)
    …                                                  # the engine calls listener.send(subscription, frame)
    watcher.block()                                    # the connection is full: nothing is made for it any more
    watcher.unblock()                                  # and it goes on where it stood
    watcher.close()                                    # always, whichever way the connection ended

Nothing is sent from inside these calls: the first event comes with the next pump. `Subscription.cursor` is at every
moment what was handed to `send`, plus what needed no event (records that were deleted or filtered out).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from topics.core.registry import Topic
from topics.core.view import View
from topics.engine.cohort import ELSEWHERE, FRESH, Cohort, Group
from topics.engine.events import Form
from topics.errors import Throttled
from topics.limits import MATCHED_TOPICS_MAX
from topics.wire.watch import PARTITION_MARK

if TYPE_CHECKING:
    from topics.engine.feed import Feed
    from topics.engine.watch import Watch


class Listener(Protocol):
    """What the engine tells a connection. All is called on the loop."""

    def send(self, subscription: Subscription, frame: bytes) -> None:
        """An event of a subscription in the watcher's form, the same bytes object for everybody who is in the same
        place. Not called while the watcher is blocked."""

    def joined(self, subscription: Subscription) -> None:
        """A topic that a wildcard matches was created, and is followed from its beginning."""

    def ended(self, subscription: Subscription) -> None:
        """A subscription is over: its topic was deleted, and the event that says so was sent."""

    def failed(self, subscription: Subscription, error: Exception) -> None:
        """A subscription is over because its records cannot be read or told: a `TopicsError`, or a bug of ours."""

    def paced(self, topics: list[str], retry_after_ms: int) -> None:
        """The engine is behind with delivering, and others are more important than these. At most once a second."""

    def refused(self, topic: str, error: Throttled) -> None:
        """A new topic that a wildcard matches is not followed: the watcher follows as many as it may."""


class Subscription:
    """One log as one watcher follows it. Made by `Watcher.subscribe`.

    It is in a cohort, with all who stand in the same place; or parked, since its watcher was blocked; or over.
    """

    __slots__ = (
        "_cursor",
        "_epoch",
        "_phase",
        "_waiting_ms",
        "cohort",
        "feed",
        "group",
        "send",
        "start_seq",
        "watcher",
    )

    def __init__(self, watcher: Watcher, feed: Feed, group: Group, cursor: int, epoch: int) -> None:
        self.watcher = watcher
        self.feed = feed
        self.group = group
        self.start_seq = cursor
        """Where it began."""
        self.send: Callable[[Subscription, bytes], None] = watcher.listener.send
        self.cohort: Cohort | None = None
        self._cursor = cursor
        self._phase = ELSEWHERE if epoch not in (0, feed.topic.epoch) else FRESH
        self._epoch = epoch
        self._waiting_ms = 0

    @property
    def key(self) -> str:
        """`name`, or `name#partition` for other partitions than the first."""
        return self.feed.key

    @property
    def topic(self) -> str:
        return self.feed.topic.name

    @property
    def cursor(self) -> int:
        return self._cursor if self.cohort is None else self.cohort.cursor

    @property
    def phase(self) -> int:
        return self._phase if self.cohort is None else self.cohort.phase

    @property
    def epoch(self) -> int:
        """The life of the topic that the cursor belongs to: an earlier one until the watcher has been told of it."""
        return self._epoch if self.phase == ELSEWHERE else self.feed.topic.epoch

    @property
    def head_seq(self) -> int:
        """The last seq that this subscription could be shown now."""
        return self.feed.ceiling(self.group.view)

    @property
    def earliest_seq(self) -> int:
        return self.feed.log.earliest_seq()

    def park(self, cursor: int, phase: int) -> None:
        """The watcher has no room: stay behind here until it does."""
        self._cursor, self._phase, self.cohort = cursor, phase, None
        self._waiting_ms = self.feed.waiting_ms
        self.watcher.parked.append(self)

    def resume(self, as_if_new: bool) -> None:
        """Go on; `as_if_new` when it has been away for so long that it counts as having just connected."""
        if as_if_new and self._phase != ELSEWHERE:
            self._phase = FRESH
        self.feed.join(self)
        if self._waiting_ms:
            self.feed.waiting_ms = min(self.feed.waiting_ms, self._waiting_ms)

    def stop(self) -> None:
        """Leave the log for good; the cursor stays readable."""
        self._cursor, self._phase = self.cursor, self.phase
        self.feed.leave(self)
        self.cohort = None


class Watcher:
    """Made by `Watch.open`. A subscription is found by its key; subscribing to a key again replaces it."""

    __slots__ = ("_form", "_watch", "blocked", "blocked_since_ms", "listener", "parked", "patterns", "subscriptions")

    def __init__(self, watch: Watch, listener: Listener, form: Form) -> None:
        self._watch = watch
        self._form = form
        self.listener = listener
        self.subscriptions: dict[str, Subscription] = {}
        self.patterns: dict[str, View] = {}
        """By the beginning of a name: how topics are shown that will be created with it."""
        self.parked: list[Subscription] = []
        """Those that something was there for while the watcher was blocked."""
        self.blocked = False
        self.blocked_since_ms = 0

    def subscribe(
        self, topic: str, view: View, *, partition: int = 0, from_seq: int = 0, tail: bool = False, epoch: int = 0
    ) -> Subscription:
        """Follow a partition behind `from_seq`, or with `tail` behind what is there now.

        `epoch`, when it is known, is the life of the topic that `from_seq` belongs to. Raises `TopicNotFound`, or
        `InvalidRequest` for a partition that is not there, and changes nothing then.
        """
        found, log = self._watch.find(topic, partition)
        return self._follow(found, partition, view, log.visible_seq if tail else from_seq, 0 if tail else epoch)

    def subscribe_matching(
        self, prefix: str, view: View, *, from_seq: int = 0, tail: bool = False
    ) -> list[Subscription]:
        """Follow all partitions of every topic whose name begins with `prefix`, those to come from their beginning.

        Topics that are followed already are left as they are. Raises `Throttled` when there are more than one watcher
        may follow, and changes nothing then.
        """
        watch = self._watch
        places = watch.places(prefix, self.subscriptions.keys())
        self.patterns[prefix] = view
        watch.expect(prefix, self)
        made = []
        for topic, partition in places:
            start = watch.log_of(topic, partition).visible_seq if tail else from_seq
            made.append(self._follow(topic, partition, view, start, 0))
        return made

    def unsubscribe(self, key: str) -> bool:
        """Stop following; whether it was followed. What was sent already cannot be called back."""
        subscription = self.subscriptions.pop(key, None)
        if subscription is not None:
            subscription.stop()
        return subscription is not None

    def unsubscribe_matching(self, prefix: str) -> list[str]:
        """Stop following everything a wildcard stands for, also what was subscribed by name; the keys of those."""
        if self.patterns.pop(prefix, None) is not None:
            self._watch.expect_no_more(prefix, self)
        keys = [key for key in self.subscriptions if key.startswith(prefix)]
        for key in keys:
            self.unsubscribe(key)
        return keys

    def block(self) -> None:
        """There is no room for more: what comes now is read when there is, in larger batches."""
        if not self.blocked:
            self.blocked = True
            self._watch.blocked_count += 1
            self.blocked_since_ms = self._watch.now_ms()

    def unblock(self) -> None:
        if not self.blocked:
            return
        self.blocked = False
        self._watch.blocked_count -= 1
        late = self._watch.now_ms() - self.blocked_since_ms >= self._watch.grace_ms
        parked, self.parked = self.parked, []
        for subscription in parked:
            if self.subscriptions.get(subscription.key) is subscription:
                subscription.resume(as_if_new=late)

    def close(self) -> None:
        """Stop following everything. More than once does no harm."""
        for prefix in self.patterns:
            self._watch.expect_no_more(prefix, self)
        self.patterns.clear()
        for subscription in self.subscriptions.values():
            subscription.stop()
        self.subscriptions.clear()
        self.parked.clear()
        self.unblock()

    # ---- the engine's side

    def born(self, topic: Topic, prefix: str) -> None:
        """A topic was created that one of the patterns matches."""
        partitions = range(topic.config.partitions)
        wanted = [each for each in partitions if key_of(topic.name, each) not in self.subscriptions]
        try:
            check_room(len(self.subscriptions) + len(wanted), prefix)
        except Throttled as error:
            self.listener.refused(topic.name, error)
            return
        for partition in wanted:
            self.listener.joined(self._follow(topic, partition, self.patterns[prefix], 0, 0))

    def _follow(self, topic: Topic, partition: int, view: View, cursor: int, epoch: int) -> Subscription:
        self.unsubscribe(key_of(topic.name, partition))
        topic.last_read_ts = self._watch.now_ms()
        feed = self._watch.feed(topic, partition)
        group = feed.group(self._watch.fitted(view), self._form)
        subscription = Subscription(self, feed, group, cursor, epoch)
        self.subscriptions[subscription.key] = subscription
        feed.add(subscription)
        return subscription


def key_of(topic: str, partition: int) -> str:
    """What a subscription is called."""
    return topic if not partition else f"{topic}{PARTITION_MARK}{partition}"


def check_room(count: int, prefix: str) -> None:
    if count > MATCHED_TOPICS_MAX:
        raise Throttled(
            f'"{prefix}*" matches too many: one watcher follows at most {MATCHED_TOPICS_MAX} logs; use a longer prefix',
            limit="matched_topics",
            max=MATCHED_TOPICS_MAX,
        )
