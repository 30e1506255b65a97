"""The same client for plain code, without asyncio.

    with topics.sync.open("./data") as client:  # or: topics.sync.connect("http://…")
        client.topic("orders").write({"sku": "A1"})

Each client runs on a thread of its own, so calls may come from any thread, and from several at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, Self

from topics import client, embedded
from topics.client.blocking import Face, Portal, blocking, handing, iterating, iterating_faces, making
from topics.client.blockingjob import BlockingJob as Job
from topics.client.blockingmessage import BlockingMessage as Message
from topics.savefile import PathLike

P = ParamSpec("P")

__all__ = [
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
    "TopicProducer",
    "Users",
    "connect",
    "open",
]


def open(path: str | PathLike, **settings: str | int | None) -> Client:
    """The engine on a directory, in this process. Use it as `with topics.sync.open("./data") as client`.

    The directory is made when it is not there. One process has it open at a time; another one gets `DirectoryLocked`.
    Settings are the `TOPICS_*` variables of the environment, and keywords such as `wal_shards=4` go before them; see
    docs/SETTINGS.md.
    """
    return Client(embedded.open(path, **settings), Portal())


def _faced(make: Callable[P, client.Client]) -> Callable[P, Client]:
    @functools.wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> Client:
        return Client(make(*args, **kwargs), Portal())

    return call


connect = _faced(client.connect)


class Delivery(Face[client.Delivery]):
    """A record that was handed to a producer. `result()` waits and says where it is, or why it is not there."""

    result = blocking(client.Delivery.result)

    def done(self) -> bool:
        """Whether it is decided, one way or the other."""
        return self._behind.done()


class Producer(Face[client.Producer]):
    """Writes to any topic of a client, in batches, exactly once and in order within each partition."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    send = handing(client.Producer.send, Delivery)
    flush = blocking(client.Producer.flush)
    close = blocking(client.Producer.close)


class TopicProducer(Face[client.TopicProducer]):
    """Writes to one topic in batches, exactly once and in order within each partition."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    send = handing(client.TopicProducer.send, Delivery)
    flush = blocking(client.TopicProducer.flush)
    close = blocking(client.TopicProducer.close)


class Group(Face[client.Group]):
    """A consumer group of a topic, by its name. Making this object touches nothing; a first consume or ack creates it.

    `consumer` is a name for whoever consumes through this object.
    """

    @property
    def name(self) -> str:
        """The name, which is the group's identity within its topic."""
        return self._behind.name

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self._behind.topic

    @property
    def consumer(self) -> str:
        """The name under which this program consumes; empty when it has none."""
        return self._behind.consumer

    take = blocking(client.Group.take)
    consume = iterating(client.Group.consume)
    ack = blocking(client.Group.ack)
    nack = blocking(client.Group.nack)
    extend = blocking(client.Group.extend)
    state = blocking(client.Group.state)
    reset = blocking(client.Group.reset)
    pause = blocking(client.Group.pause)
    resume = blocking(client.Group.resume)
    drop = blocking(client.Group.drop)


class Topic(Face[client.Topic]):
    """A topic by its name. Making this object touches nothing; the first write creates the topic if need be."""

    @property
    def name(self) -> str:
        """The name, which is the topic's identity."""
        return self._behind.name

    create = blocking(client.Topic.create)
    configure = blocking(client.Topic.configure)
    state = blocking(client.Topic.state)
    drop = blocking(client.Topic.drop)
    report_archive = blocking(client.Topic.report_archive)
    drop_archive = blocking(client.Topic.drop_archive)
    write = blocking(client.Topic.write)
    write_many = blocking(client.Topic.write_many)
    producer = making(client.Topic.producer, TopicProducer)
    diff = blocking(client.Topic.diff)
    follow = iterating(client.Topic.follow)
    groups = blocking(client.Topic.groups)
    delete = blocking(client.Topic.delete)

    def group(self, name: str, *, consumer: str = "") -> Group:
        """The consumer group of this name, whether it exists already or not: a position that the engine keeps.

        `consumer` is a name for this program within the group.
        """
        return Group(self._behind.group(name, consumer=consumer), self._portal)


def _faces(jobs: list[client.Job], portal: Portal) -> list[Job]:
    return [Job(job, portal) for job in jobs]


class Queue(Face[client.Queue]):
    """A queue by its name. Making this object touches nothing; the first job that is put creates the queue if need be.

    `node` is the name under which this program holds jobs; one is made up when there is none.
    """

    @property
    def name(self) -> str:
        """The name, which is that of the topic it is."""
        return self._behind.name

    @property
    def node(self) -> str:
        """Who holds the jobs that are claimed through this object."""
        return self._behind.node

    create = blocking(client.Queue.create)
    state = blocking(client.Queue.state)
    leases = blocking(client.Queue.leases)
    put = blocking(client.Queue.put)
    put_many = blocking(client.Queue.put_many)
    claim = handing(client.Queue.claim, _faces)
    ack = blocking(client.Queue.ack)
    nack = blocking(client.Queue.nack)
    extend = blocking(client.Queue.extend)
    work = iterating_faces(client.Queue.work, Job)
    run = blocking(client.Queue.run)
    redrive = blocking(client.Queue.redrive)


def _messages(messages: list[client.Message], portal: Portal) -> list[Message]:
    return [Message(message, portal) for message in messages]


class Heap(Face[client.Heap]):
    """A heap by its name. Making this object touches nothing.

    `consumer` is the name that shows who has a message, `producer` the name that what is enqueued here is numbered
    under; both are made up when there are none.
    """

    @property
    def name(self) -> str:
        """The name, which is that of the topic it is."""
        return self._behind.name

    @property
    def consumer(self) -> str:
        """Who has what is popped through this object."""
        return self._behind.consumer

    create = blocking(client.Heap.create)
    configure = blocking(client.Heap.configure)
    info = blocking(client.Heap.info)
    stats = blocking(client.Heap.stats)
    purge = blocking(client.Heap.purge)
    drop = blocking(client.Heap.drop)
    enqueue = blocking(client.Heap.enqueue)
    enqueue_many = blocking(client.Heap.enqueue_many)
    pop = iterating_faces(client.Heap.pop, Message)
    take = handing(client.Heap.take, _messages)
    ack = blocking(client.Heap.ack)
    nack = blocking(client.Heap.nack)
    extend = blocking(client.Heap.extend)
    peek = blocking(client.Heap.peek)
    reprioritize = blocking(client.Heap.reprioritize)
    cancel = blocking(client.Heap.cancel)
    move_to_dlq = blocking(client.Heap.move_to_dlq)
    dead_letters = iterating(client.Heap.dead_letters)
    dead_letter = blocking(client.Heap.dead_letter)
    replay = blocking(client.Heap.replay)
    delete_dead = blocking(client.Heap.delete_dead)


class Router(Face[client.Router]):
    """A router by its name. Making this object touches nothing."""

    @property
    def name(self) -> str:
        """The name, which is the router's identity."""
        return self._behind.name

    put = blocking(client.Router.put)
    state = blocking(client.Router.state)
    drop = blocking(client.Router.drop)


class Table(Face[client.Table]):
    """A registered table by its name. Making this object touches nothing."""

    @property
    def name(self) -> str:
        """The name that it is registered under."""
        return self._behind.name

    put = blocking(client.Table.put)
    state = blocking(client.Table.state)
    drop = blocking(client.Table.drop)


class Pipeline(Face[client.Pipeline]):
    """A pipeline by its name. Making this object touches nothing."""

    @property
    def name(self) -> str:
        """The name; of the routes of a table, `routes:` and the name of the table."""
        return self._behind.name

    put = blocking(client.Pipeline.put)
    state = blocking(client.Pipeline.state)
    pause = blocking(client.Pipeline.pause)
    resume = blocking(client.Pipeline.resume)
    drop = blocking(client.Pipeline.drop)
    logs = blocking(client.Pipeline.logs)
    report = blocking(client.Pipeline.report)


class Keys(Face[client.Keys]):
    """The managed keys of a server. Whoever uses this needs the scope admin."""

    create = blocking(client.Keys.create)
    list = blocking(client.Keys.list)
    get = blocking(client.Keys.get)
    revoke = blocking(client.Keys.revoke)


class Users(Face[client.Users]):
    """The people who sign in to a server. Whoever uses this needs the scope admin.

    A user is named by the e-mail or the id.
    """

    invite = blocking(client.Users.invite)
    list = blocking(client.Users.list)
    get = blocking(client.Users.get)
    set_role = blocking(client.Users.set_role)
    disable = blocking(client.Users.disable)
    enable = blocking(client.Users.enable)
    new_link = blocking(client.Users.new_link)
    remove = blocking(client.Users.remove)


class Sessions(Face[client.Sessions]):
    """Who is signed in to a server, from where and since when. Whoever uses this needs the scope admin."""

    list = blocking(client.Sessions.list)
    end = blocking(client.Sessions.end)


class Audit(Face[client.Audit]):
    """The audit log of a server. Whoever uses this needs the scope admin."""

    search = iterating(client.Audit.search)
    verify = blocking(client.Audit.verify)


class Client(Face[client.Client]):
    """All topics of one engine. Use it in `with`, which opens and closes it."""

    def __enter__(self) -> Self:
        try:
            self._portal.run(self._behind.__aenter__())
        except BaseException:
            self._portal.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish what was begun, store everything, let go of the engine. Leaving `with` does it. In a process that was
        forked meanwhile it does nothing: the client is open in the other one."""
        if self._portal.is_inherited:
            return
        try:
            self._portal.run(self._behind.close())
        finally:
            self._portal.close()

    def topic(self, name: str) -> Topic:
        """The topic of this name, whether it exists already or not."""
        return Topic(self._behind.topic(name), self._portal)

    def queue(self, name: str, *, node: str | None = None) -> Queue:
        """The queue of this name, whether it exists already or not. Its jobs are claimed under the name `node`."""
        return Queue(self._behind.queue(name, node=node), self._portal)

    def heap(self, name: str, *, consumer: str = "", producer: str = "") -> Heap:
        """The heap of this name, whether it exists already or not.

        `consumer` shows who has what is popped; `producer` names what is enqueued, so that it is there once.
        """
        return Heap(self._behind.heap(name, consumer=consumer, producer=producer), self._portal)

    def router(self, name: str) -> Router:
        """The router of this name, whether it exists already or not."""
        return Router(self._behind.router(name), self._portal)

    def table(self, name: str) -> Table:
        """The registered table of this name, whether it is registered already or not."""
        return Table(self._behind.table(name), self._portal)

    def pipeline(self, name: str) -> Pipeline:
        """The pipeline of this name, whether it exists already or not."""
        return Pipeline(self._behind.pipeline(name), self._portal)

    @property
    def keys(self) -> Keys:
        """The managed keys of the server: make, list and revoke them."""
        return Keys(self._behind.keys, self._portal)

    @property
    def users(self) -> Users:
        """The people who sign in to the server: invite, list, change and remove them."""
        return Users(self._behind.users, self._portal)

    @property
    def sessions(self) -> Sessions:
        """Who is signed in to the server."""
        return Sessions(self._behind.sessions, self._portal)

    @property
    def audit(self) -> Audit:
        """The audit log of the server: search it, and see whether anybody changed it."""
        return Audit(self._behind.audit, self._portal)

    heaps = iterating(client.Client.heaps)
    tables = iterating(client.Client.tables)
    pipelines = iterating(client.Client.pipelines)
    route = blocking(client.Client.route)
    routers = iterating(client.Client.routers)
    topics = iterating(client.Client.topics)
    producer = making(client.Client.producer, Producer)
    follow = iterating(client.Client.follow)
    pages = iterating(client.Client.pages)
    sql = blocking(client.Client.sql)
    sql_arrow = blocking(client.Client.sql_arrow)
    stage = blocking(client.Client.stage)
    publish = blocking(client.Client.publish)
    abort = blocking(client.Client.abort)
    producers = iterating(client.Client.producers)
    forget_producer = blocking(client.Client.forget_producer)
    backup = blocking(client.Client.backup)
