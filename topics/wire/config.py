"""A topic's config as the body of a PUT or PATCH, and back."""

from __future__ import annotations

from typing import Any

import msgspec

from topics.core.config import as_wire
from topics.model import TopicConfig
from topics.wire import json

_decoder = msgspec.json.Decoder(dict[str, Any])


def decode_config(body: bytes) -> dict[str, Any]:
    """The fields a client sent, for `core/config.py` to check; an empty body names none."""
    if not body:
        return {}
    fields = json.decode(_decoder, body)
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    return fields


def encode_config(config: TopicConfig) -> bytes:
    return msgspec.json.encode(as_wire(config))
