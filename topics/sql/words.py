"""What a shell has to know of the language while somebody types: its words, and where a statement ends.

Nothing here needs the parser, which a client may not have.
"""

from __future__ import annotations

WORDS = (
    *("ACK", "ADD", "ALIAS", "ALTER", "AND", "APPEND", "AS", "BY", "CLEAR", "COLUMNS", "CONSUME", "CONSUMER"),
    *("COUNT", "CREATE", "DELAY", "DELETE", "DELTA", "DESC", "DESCRIBE", "DISTINCT", "DROP", "EARLIEST", "EXISTS"),
    *("EXPLAIN", "EXTEND", "FALSE", "FOR", "FROM", "GROUP", "GROUPS", "HAVING", "IF", "IN", "INSERT", "INTERVAL"),
    *("INTO", "IS", "JOIN", "KEY", "LATEST", "LEFT", "LIKE", "LIMIT", "LOCATION", "MERGE", "NACK", "NOT", "NOW"),
    *("NULL", "OFFSET", "ON", "OR", "ORDER", "PARTITION", "PARTITIONS", "PAUSE", "PIPELINE", "PIPELINES", "REGISTER"),
    *("REPLACE", "RESET", "RESUME", "ROUTES", "SCHEMA", "SELECT", "SET", "SHOW", "SNAPSHOT", "SOURCE", "STREAM"),
    *("SUM", "TABLE", "TABLES", "TIMESTAMP", "TO", "TOPIC", "TOPICS", "TRUE", "UNION", "UNREGISTER", "UPDATE"),
    *("UPTO", "USING", "VALUES", "VERSION", "WAIT", "WATERMARK", "WHEN", "WHERE", "WITH"),
)
SYSTEM_TABLES = (
    *("system.groups", "system.heaps", "system.metrics", "system.partitions", "system.pipelines", "system.queues"),
    *("system.tables", "system.topic_offsets", "system.topic_routes", "system.topics"),
)

_QUOTES = "'\"`"


def ends(text: str) -> bool:
    """Whether the last thing in a text is a semicolon that ends a statement, and not one in quotes or a comment."""
    at = 0
    ended = False
    while at < len(text):
        character = text[at]
        if text.startswith("--", at):
            at = _behind(text, "\n", at)
        elif text.startswith("/*", at):
            if text.find("*/", at + 2) < 0:
                return False
            at = _behind(text, "*/", at + 2)
        elif character in _QUOTES:
            if text.find(character, at + 1) < 0:
                return False
            at = _behind(text, character, at + 1)
            ended = False
        else:
            if not character.isspace():
                ended = character == ";"
            at += 1
    return ended


def _behind(text: str, mark: str, at: int) -> int:
    """Behind the next mark, or at the end."""
    found = text.find(mark, at)
    return len(text) if found < 0 else found + len(mark)
