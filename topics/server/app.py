"""The composition root of the server, and its life.

    bound -> recovering -> serving -> draining -> closed

`start` binds the address first: somebody else's port is found out before the directory is touched, and probes are
answered while the engine recovers on a thread. Until it has, `Context.host` is None, which is how the dispatch knows to
answer `not_ready`. `close` may come at any time. It stops listening and says `shutting_down` to whoever is still
connected, ends the waits of readers, gives requests in flight their time, and only then closes the engine, so
that what is written until the last moment is in the last checkpoint.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from errno import EACCES, EEXIST, ENOENT, ENOTDIR, EPERM, EROFS
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from topics.clock import Clock
from topics.core.totals import Totals
from topics.engine.host import Host, Opener
from topics.engine.opening import opener, record_limits
from topics.engine.recovery import Progress
from topics.errors import InvalidSetting
from topics.server.accesslog import with_access_log, with_refusals_logged
from topics.server.answers import failure
from topics.server.audit import Audit
from topics.server.auth import asks_for_keys, check_bind, is_loopback
from topics.server.connections import Connections
from topics.server.context import Context
from topics.server.cors import ANY, Cors
from topics.server.desk import link_to
from topics.server.dispatch import Dispatcher
from topics.server.grpcdoor import grpc_listener
from topics.server.hashing import Hashing
from topics.server.hostnames import AllowedHosts
from topics.server.httpoptions import HttpOptions
from topics.server.lane import Lane
from topics.server.listener import stop_listening
from topics.server.logs import fields
from topics.server.message import Dispatch, Refuse
from topics.server.observing import Observer
from topics.server.openfiles import connections_max, reserved_files
from topics.server.overruns import Overruns
from topics.server.pageorigins import PageOrigins
from topics.server.setupfile import SetUpFile
from topics.server.signing import Signing
from topics.server.table import EVERYTHING, Table
from topics.server.tracing import spans_for
from topics.server.track import TrackOf, no_track
from topics.server.tracked import TrackedProtocol
from topics.server.upkeep import Upkeep
from topics.server.websessions import WebSessions
from topics.settings import Settings
from topics.steadyclock import SteadyClock

if TYPE_CHECKING:
    from topics.server.spans import Spans

LISTEN_BACKLOG = 1024
"""Connections that the system holds while the loop is busy."""

UNUSABLE = frozenset({EACCES, EPERM, EROFS, ENOTDIR, EEXIST, ENOENT})
"""What the system says of a path that is no directory for us."""


MakeOpener = Callable[[Settings, Progress], Opener]

log = logging.getLogger(__name__)


class Server:
    """Entered with `async with`: bound inside, drained and closed behind it."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        make_opener: MakeOpener = opener,
        hashing: Hashing | None = None,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        """`origins` says where settings come from, for those who ask."""
        check_bind(settings)
        self._settings = settings
        # Keys, sessions and waits end when their time is over, whatever the wall clock does meanwhile.
        self._clock = clock = SteadyClock(clock)
        self._make_opener = make_opener
        self._context = Context(settings, record_limits(settings), clock, clock.now_ms(), hashing=hashing or Hashing())
        self._overruns = Overruns(self._totals)
        self._context.origins = origins or {}
        self._upkeep = Upkeep(self._context)
        self.set_up_link = ""
        """Where the first user is made, once the server is ready and has none."""
        self._set_up_file: SetUpFile | None = None
        self.key_count = len(self._context.authenticator)
        self._options = _http_options(settings)
        self._connections = Connections(
            clock,
            self._context.heading,
            self._options.idle_timeout_s,
            connections_max(),
            self._context.held,
            self._context.turns,
        )
        self._spans = spans_for(settings)
        table = Table(EVERYTHING)
        context = self._context
        self._dispatcher = Dispatcher(context, table, context.authenticator, context.quota)
        self._dispatch = _dispatch(self._dispatcher, context, table, self._spans)
        self._refuse = _refuse(self._context, table, self._spans)
        lane = Lane(self._context, table, self._dispatch, self._options.gzip_bytes_min)
        # A log line or a span for each request has to be made for each request.
        ordinary = settings.access_log or self._spans is not None
        self._track_of: TrackOf = no_track if ordinary else lane.track_of
        self.url = ""
        """Where the server listens, once it does; with port 0, the port that the system chose."""
        self.grpc_address = ""
        """Where gRPC is, `host:port`; empty when there is none."""
        self._listener: asyncio.Server | None = None
        self._grpc = grpc_listener(self._context)
        self._recovery: asyncio.Task[None] | None = None

    @property
    def topic_count(self) -> int:
        host = self._context.host
        return 0 if host is None else len(host.engine.machine.topics)

    def _totals(self) -> Totals | None:
        host = self._context.host
        return None if host is None else host.engine.machine.totals

    async def __aenter__(self) -> Server:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- the start

    async def start(self) -> None:
        """Listen, and begin to recover. Raises `InvalidSetting` when the address cannot be had."""
        if self._spans is not None:
            self._spans.start()
        self._listener = await self._listen()
        host, port = self._listener.sockets[0].getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        await self._start_grpc(self._listener)
        told = fields(url=self.url, grpc=self.grpc_address, data_dir=self._settings.data_dir, keys=self.key_count)
        log.info("listening", extra=told)
        if not self._context.authenticator.is_on:
            log.warning("authentication is off: everybody who reaches the address may do everything")
            if ANY in self._options.cors.origins:
                log.warning("TOPICS_CORS_ORIGINS=* without keys: every web page may do everything")
        elif not is_loopback(self._settings.host):
            self._warn_of_plain_text()
        self._connections.start()
        self._context.throttle.start(asyncio.get_running_loop())
        self._overruns.start(asyncio.get_running_loop())
        self._upkeep.start(asyncio.get_running_loop())
        self._recovery = asyncio.create_task(self._recover())

    def _warn_of_plain_text(self) -> None:
        """Keys and cookies are as good as passwords for who reads them on their way."""
        settings = self._settings
        if not settings.forwarded:
            log.warning(
                "keys and sign-ins cross the network in plain text: put a proxy that speaks TLS in front, and say so "
                "with TOPICS_FORWARDED=1",
                extra=fields(host=settings.host),
            )
        if self._grpc is not None and settings.grpc_tls_cert is None:
            log.warning(
                "keys cross the network in plain text over gRPC: set TOPICS_GRPC_TLS_CERT and TOPICS_GRPC_TLS_KEY, or "
                "TOPICS_NO_GRPC=1",
                extra=fields(host=settings.host),
            )

    async def _listen(self) -> asyncio.Server:
        settings = self._settings
        loop = asyncio.get_running_loop()
        try:
            return await loop.create_server(
                self._connection,
                settings.host,
                settings.port,
                # All that wait may come in one turn of the loop, before the first of them can be dropped again.
                backlog=min(LISTEN_BACKLOG, reserved_files() // 2),
            )
        except OSError as error:
            # The system's own words for a name that leads nowhere, a port that is taken or one that needs privileges,
            # without the loop's about what it was doing.
            reason = (error.strerror or str(error)).rpartition(": ")[2]
            raise InvalidSetting(
                f"cannot listen on {settings.host} port {settings.port}: {reason}; expected an address of this machine "
                "(--host, TOPICS_HOST) and a port that nobody else has (--port, TOPICS_PORT)",
                settings=["TOPICS_HOST", "TOPICS_PORT"],
            ) from error

    def _connection(self) -> TrackedProtocol:
        return TrackedProtocol(
            self._track_of, self._dispatch, self._refuse, self._options, self._connections, self._dispatcher
        )

    async def _start_grpc(self, listener: asyncio.Server) -> None:
        if self._grpc is None:
            return
        try:
            await self._grpc.start()
        except BaseException:
            listener.close()
            raise
        self.grpc_address = self._grpc.address

    async def _recover(self) -> None:
        context = self._context
        began_ns = self._clock.ticks_ns()
        try:
            host = await Host.open(self._make_opener(self._settings, self._progress))
        except OSError as error:
            if error.errno not in UNUSABLE:
                raise
            raise InvalidSetting(
                f"TOPICS_DATA_DIR={self._settings.data_dir}: {error.strerror} ({error.filename}); expected a directory "
                "that this user may write to: give it to this user, or name another one (--data-dir)",
                settings=["TOPICS_DATA_DIR"],
            ) from error
        context.recovery_progress = 1.0
        try:
            await self._open_accounts(host)
        except BaseException:
            await host.close()
            raise
        context.observer = Observer(context, self._connections)
        context.observer.begin(host.engine)
        context.host = host
        if self._grpc is not None:
            await self._grpc.ready()
        report = host.engine.report
        log.info(
            "ready",
            extra=fields(
                topics=self.topic_count,
                facts=report.facts,
                last_stop=report.last_stop,
                ms=(self._clock.ticks_ns() - began_ns) // 1_000_000,
            ),
        )
        for note in report.notes:
            log.warning("mended", extra=fields(note=note))

    async def _open_accounts(self, host: Host) -> None:
        context, store = self._context, host.engine.store
        audit = Audit(store.fs, store.directory, self._clock, host)
        await audit.start()
        context.audit = audit
        if not context.authenticator.is_on:
            return
        signing = Signing(store.fs, store.directory, self._clock)
        await asyncio.to_thread(signing.load)
        self._set_up_file = SetUpFile(store.fs, store.directory)
        await asyncio.to_thread(self._set_up_file.remove)
        context.door.on_set_up = self._set_up_file.remove
        web = WebSessions(context.accounts, signing, self._clock, self._settings.forwarded)
        context.web = context.authenticator.sessions = web
        if not host.engine.machine.accounts.users:
            self.set_up_link = f"{self.url}{link_to(context.door.offer_set_up())}"

    def keep_set_up_link(self) -> str:
        """Put the link into a file that only its owner may read, for who cannot be shown it; returns the path."""
        assert self._set_up_file is not None, "there is a link, so accounts are open"
        self._set_up_file.write(self.set_up_link)
        return self._set_up_file.path

    def _progress(self, done: float) -> None:
        """Called on the thread that recovers; one assignment needs no lock."""
        self._context.recovery_progress = done

    async def ready(self) -> None:
        """Returns when every topic is served; raises what the recovery raised."""
        assert self._recovery is not None
        await asyncio.shield(self._recovery)

    async def ready_before(self, stop: asyncio.Event) -> bool:
        """The same, giving up when `stop` is set first."""
        stopped = asyncio.create_task(stop.wait())
        ready = asyncio.create_task(self.ready())
        try:
            await asyncio.wait({stopped, ready}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                return False
            ready.result()
            return True
        finally:
            stopped.cancel()
            ready.cancel()

    # ---- the end

    async def close(self) -> None:
        """Drain, store everything and let go of the directory. A recovery that is under way is waited for."""
        if self._listener is None:
            return
        listener, self._listener = self._listener, None
        self._context.draining = True
        log.info("draining", extra=fields(drain_ms=self._settings.drain_ms))
        await stop_listening(listener)
        if self._recovery is not None:
            await asyncio.wait({self._recovery})
        host = self._context.host
        if host is not None:
            host.end_waiting()
        drain_s = self._settings.drain_ms / 1000
        try:
            drained = self._connections.drain(drain_s)
            if self._grpc is None:
                cut_off = await drained
            else:
                cut_off, _ = await asyncio.gather(drained, self._grpc.stop(drain_s))
        finally:
            self._connections.stop()
            self._context.throttle.stop()
            self._overruns.stop()
            self._upkeep.stop()
            await self._context.sql.close()
            if self._context.chores:
                await asyncio.wait(self._context.chores)
            if host is not None:
                self._upkeep.note_used_keys()
            if self._context.audit is not None:
                await self._context.audit.close()
            self._context.hashing.close()
            if self._set_up_file is not None:
                await asyncio.to_thread(self._set_up_file.remove)
            if host is not None:
                await host.close()
            if self._spans is not None:
                await self._spans.close()
        log.info("stopped", extra=fields(cut_off=cut_off))


def _http_options(settings: Settings) -> HttpOptions:
    keys = asks_for_keys(settings)
    pages = PageOrigins(Cors.of(settings.cors_origins), keys)
    hosts = AllowedHosts.of(settings, keys)
    return HttpOptions(body_bytes_max=settings.max_body_bytes, cors=pages.cors, hosts=hosts, pages=pages)


def _dispatch(dispatcher: Dispatcher, context: Context, table: Table, spans: Spans | None) -> Dispatch:
    dispatch: Dispatch = dispatcher
    if spans is not None:
        dispatch = spans.around(dispatch, table)
    return with_access_log(dispatch, context.clock) if context.settings.access_log else dispatch


def _refuse(context: Context, table: Table, spans: Spans | None) -> Refuse:
    refuse: Refuse = partial(failure, context)
    if spans is not None:
        refuse = spans.around_refusals(refuse, table)
    return with_refusals_logged(refuse, context.clock) if context.settings.access_log else refuse
