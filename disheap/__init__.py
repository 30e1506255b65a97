"""Heaps under the names that clients of `disheap` know, over gRPC. A thin layer over `topics.Heap`.

    async with DisheapClient(["localhost:4001"], api_key="…") as client:
        await client.make_heap("jobs")
        async with client.producer() as producer:
            await producer.enqueue("jobs", b"payload", priority=5)
        async with client.consumer("jobs") as consumer:
            async with consumer.item() as message:
                print(message.payload)

New programs better use `topics.connect`, which has the same heaps and everything else.
"""

from __future__ import annotations

from disheap import errors
from disheap.client import DisheapClient
from disheap.consumer import Consumer
from disheap.message import Message
from disheap.producer import Producer

__all__ = ["Consumer", "DisheapClient", "Message", "Producer", "errors"]
