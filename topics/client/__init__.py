"""The SDK: the same objects whether the engine runs in this process or elsewhere."""

from topics.client.client import Client
from topics.client.topic import Topic

__all__ = ["Client", "Topic"]
