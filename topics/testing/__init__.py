"""Stand-ins for time, disk and network, and a server for tests, shipped so that users can test as we test ourselves."""

from topics.testing.chaosproxy import ChaosProxy, Fault, chaos_proxy
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs, Rule, SimulatedCrash
from topics.testing.monitorfs import MonitorFs
from topics.testing.platter import CRASH_MODES, CrashMode
from topics.testing.served import RunningServer, TestServer, running_server, server

__all__ = [
    "CRASH_MODES",
    "Call",
    "ChaosProxy",
    "CrashMode",
    "FakeDisk",
    "Fault",
    "FaultFs",
    "MonitorFs",
    "Rule",
    "RunningServer",
    "SimClock",
    "SimulatedCrash",
    "TestServer",
    "chaos_proxy",
    "running_server",
    "server",
]
