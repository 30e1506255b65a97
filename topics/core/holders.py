"""Who holds leases: a worker's name, and the connection its jobs were pushed on, as one small number.

A lease table keeps a number for each lease instead of a name. A holder exists as long as any lease names it. `NOBODY`
is the number of no holder.

A connection is a number that the engine gives to a stream of jobs while it is open; 0 is none. For a connection the
seqs that it holds *now* are known, so that it can be kept at its bound and let go of as a whole; `lighter` names the
connections that hold less than they did when somebody last asked.
"""

from __future__ import annotations

NOBODY = 0


class Holders:
    __slots__ = ("_connections", "_ids", "_lease_counts", "_on_connection", "_unused", "lighter", "nodes")

    def __init__(self) -> None:
        self.lighter: set[int] = set()
        self._ids: dict[tuple[str, int], int] = {}
        self.nodes = [""]
        """Names by number."""
        self._connections = [0]
        self._lease_counts = [0]
        self._unused: list[int] = []
        self._on_connection: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def take(self, node: str, connection: int, count: int) -> int:
        """The number of a holder that gets so many leases more."""
        holder = self._ids.get((node, connection))
        if holder is None:
            holder = self._new(node, connection)
        self._lease_counts[holder] += count
        return holder

    def _new(self, node: str, connection: int) -> int:
        if self._unused:
            holder = self._unused.pop()
            self.nodes[holder], self._connections[holder] = node, connection
        else:
            holder = len(self.nodes)
            self.nodes.append(node)
            self._connections.append(connection)
            self._lease_counts.append(0)
        self._ids[(node, connection)] = holder
        return holder

    def lease_count(self, node: str, connection: int) -> int:
        """Leases that name a holder."""
        holder = self._ids.get((node, connection))
        return 0 if holder is None else self._lease_counts[holder]

    def drop(self, holder: int, count: int = 1) -> None:
        """So many leases name this holder no more."""
        self._lease_counts[holder] -= count
        if not self._lease_counts[holder]:
            del self._ids[(self.nodes[holder], self._connections[holder])]
            self._unused.append(holder)

    # ---- connections

    def holds(self, holder: int, seq: int) -> None:
        """A lease of this holder is alive."""
        connection = self._connections[holder]
        if connection:
            self._on_connection.setdefault(connection, set()).add(seq)

    def lost(self, holder: int, seq: int) -> None:
        """It is not any more, whatever became of it. Telling so twice is telling it once."""
        connection = self._connections[holder]
        held = self._on_connection.get(connection)
        if held is not None and seq in held:
            held.discard(seq)
            if not held:
                del self._on_connection[connection]
            self.lighter.add(connection)

    def on_connection(self, connection: int) -> list[int]:
        """The seqs that a connection holds, ascending."""
        return sorted(self._on_connection.get(connection, ()))

    def held_count(self, connection: int) -> int:
        return len(self._on_connection.get(connection, ()))
