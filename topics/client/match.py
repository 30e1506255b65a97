"""How a caller names records by their tags."""

from __future__ import annotations

Match = str | tuple[str, str, str] | list[str]
"""A tag, or `["tag", "Eq", tag]`, or `["tag", "Glob", "prefix*"]`."""
