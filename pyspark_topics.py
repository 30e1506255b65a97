"""Where Spark finds `format("topics")`: it looks for modules with such a name and takes their `DefaultSource`."""

from __future__ import annotations

from topics.spark.source import TopicsSource as DefaultSource

__all__ = ["DefaultSource"]
