"""How fast it is: the engine in-process on one core, the server against real peers. `python -m bench`, or `make bench`.

Every measure runs in a process of its own, so that none inherits another's memory or caches. Machines drift by a factor
of two within an hour; a figure of one run is a reading, and only the ratio to a peer measured in the same minute is a
claim. The engine's peer is SQLite in WAL mode, from the standard library, given the same bodies and asked for the same
pages; the server's are Redis, NATS and PostgreSQL as processes beside it.
"""
