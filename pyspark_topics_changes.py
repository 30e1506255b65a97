"""Where Spark finds `format("topics_changes")`: it looks for modules with such a name and takes their `DefaultSource`."""

from __future__ import annotations

from topics.spark.pipeline.changesource import ChangesSource as DefaultSource

__all__ = ["DefaultSource"]
