"""Stand-ins for time and disk, shipped with the package so that its users can test as it tests itself."""

from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs, Rule, SimulatedCrash
from topics.testing.monitorfs import MonitorFs
from topics.testing.platter import CRASH_MODES, CrashMode

__all__ = [
    "CRASH_MODES",
    "Call",
    "CrashMode",
    "FakeDisk",
    "FaultFs",
    "MonitorFs",
    "Rule",
    "SimClock",
    "SimulatedCrash",
]
