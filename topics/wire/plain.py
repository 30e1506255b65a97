"""Plain writes that came together: whether the data of each is one JSON value, found out in one pass over all of them.

The texts are parsed as the items of one array. A text that is not one value might still pass for several, or make a
value together with its neighbours: `1,2`, or `"a` and `b"`. So the items must be as long as the texts, each of them. As
there is then no byte left for a space, the first item ends where the first text does, and so on to the last.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_single = msgspec.json.Decoder(msgspec.Raw)


def are_values(texts: Sequence[bytes]) -> bool:
    """Whether each text is one JSON value in UTF-8 without space around it."""
    joined = texts[0] if len(texts) == 1 else b"[%b]" % b",".join(texts)
    try:
        if not joined.isascii():
            joined.decode()
        items = [_single.decode(joined)] if len(texts) == 1 else _decoder.decode(joined)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return list(map(len, items)) == list(map(len, texts))
