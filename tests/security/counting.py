"""What a test asked and how often, told to whoever reads the report of the run: `python -m proof security`."""

from __future__ import annotations

from collections.abc import Callable

Count = Callable[[str, object], None]
"""The fixture `record_property`: a name, and how many there were."""
