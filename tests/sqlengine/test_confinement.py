"""What a confined process cannot do, seen from inside of one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_PROGRAM = """
import json, signal, socket, os, resource
from topics.sqlengine.confinement import confine, ignore_signals
from topics.storage.fs import ProcessMemory

def refused(work):
    try:
        work()
    except (OSError, MemoryError) as error:
        return type(error).__name__
    return "done"

memory = ProcessMemory()
ignore_signals()
confine(memory, 64 << 20)
print(json.dumps({
    "read": refused(lambda: open("/etc/hostname")),
    "write": refused(lambda: open("/tmp/confined", "w")),
    "connect": refused(lambda: socket.socket()),
    "run": refused(lambda: os.pipe()),
    "little": refused(lambda: bytearray(32 << 20)),
    "much": refused(lambda: bytearray(128 << 20)),
    "raise": refused(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))) if os.getuid() else "OSError",
    "terminated": refused(lambda: os.kill(os.getpid(), signal.SIGTERM)),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "grows": memory.data_bytes() > 0,
}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of another system has no such limits")
def test_confined_process_opens_nothing_and_has_bounded_memory() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == {
        "read": "OSError",
        "write": "OSError",
        "connect": "OSError",
        "run": "OSError",
        "little": "done",
        "much": "MemoryError",
        "raise": "OSError",
        "terminated": "done",
        "core": [0, 0],
        "grows": True,
    }
