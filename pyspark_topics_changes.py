"""Where Spark finds `format("topics_changes")`: it takes the `DefaultSource` of modules with such a name."""

from __future__ import annotations

from topics.spark.pipeline.changesource import ChangesSource as DefaultSource

__all__ = ["DefaultSource"]
