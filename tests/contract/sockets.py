"""What is left of connections, as the system sees it."""

from __future__ import annotations

import os
from pathlib import Path


def socket_count() -> int:
    """Files are not counted: a log that lives for a while has segments."""
    with os.scandir("/proc/self/fd") as found:
        return sum(Path(each.path).is_socket() for each in found)
