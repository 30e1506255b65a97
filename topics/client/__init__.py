"""The SDK: the same objects whether the engine runs in this process or elsewhere."""

from topics.client.accounts import Keys, Sessions, Users
from topics.client.auditlog import Audit
from topics.client.client import Client
from topics.client.connector import connect
from topics.client.cursors import Cursor, CursorStore, MemoryCursors
from topics.client.delivery import Delivered, Delivery
from topics.client.group import Group
from topics.client.heap import Heap
from topics.client.job import Job
from topics.client.message import Message
from topics.client.pipeline import Pipeline
from topics.client.producer import Producer, TopicProducer
from topics.client.queue import Queue
from topics.client.router import Router
from topics.client.table import Table
from topics.client.topic import Topic
from topics.client.tracing import trace_context
from topics.client.worker import Worked

__all__ = [
    "Audit",
    "Client",
    "Cursor",
    "CursorStore",
    "Delivered",
    "Delivery",
    "Group",
    "Heap",
    "Job",
    "Keys",
    "MemoryCursors",
    "Message",
    "Pipeline",
    "Producer",
    "Queue",
    "Router",
    "Sessions",
    "Table",
    "Topic",
    "TopicProducer",
    "Users",
    "Worked",
    "connect",
    "trace_context",
]
