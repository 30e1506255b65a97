"""The gRPC contract: the `.proto` files, ready for whoever generates a client of their own, and their messages.

    disheap/v1/disheap.proto    the contract that existing clients of heaps know, which never changes
    topics/v1/heaps.proto       what it lacks
    descriptors.py              both of them, compiled
    messages.py                 a class for each message, and the methods of each service

Nothing here is generated Python: that would register the names of the contract in the one pool that a process has, and
a program that also brings a client generated from the same contract would fail to start.
"""
