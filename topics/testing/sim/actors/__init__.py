"""Everybody who uses the simulated server, one file for each kind of work."""

from topics.testing.sim.actors.batcher import Batcher, Mixer
from topics.testing.sim.actors.caster import Caster
from topics.testing.sim.actors.clerk import Clerk
from topics.testing.sim.actors.consumer import Consumer
from topics.testing.sim.actors.dropper import Dropper
from topics.testing.sim.actors.echoer import Echoer
from topics.testing.sim.actors.flooder import Flooder
from topics.testing.sim.actors.keeper import Keeper
from topics.testing.sim.actors.looker import Looker
from topics.testing.sim.actors.piper import Piper
from topics.testing.sim.actors.popper import Enqueuer, Popper
from topics.testing.sim.actors.porter import Porter
from topics.testing.sim.actors.reader import Deleter, Reader
from topics.testing.sim.actors.watcher import Watcher
from topics.testing.sim.actors.worker import Boss, Worker
from topics.testing.sim.actors.writer import Writer

__all__ = [
    "Batcher", "Boss", "Caster", "Clerk", "Consumer", "Deleter", "Dropper", "Echoer", "Enqueuer", "Flooder", "Keeper",
    "Looker", "Mixer", "Piper", "Popper", "Porter", "Reader", "Watcher", "Worker", "Writer",
]  # fmt: skip
