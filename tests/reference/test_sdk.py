from __future__ import annotations

import inspect
from pathlib import Path

import topics
from reference.sdk import SECTIONS, as_markdown
from topics import errors

TEXT = as_markdown()


def test_the_document_is_fresh() -> None:
    path = Path(__file__).parents[2] / "docs" / "SDK.md"
    assert path.read_text() == TEXT, "docs/SDK.md is stale: run `make docs`"


def test_every_public_name_has_its_place() -> None:
    told = {name for names in SECTIONS.values() for name in names}
    assert told | {"errors", "sync", "__version__"} == set(topics.__all__), "SECTIONS of reference/sdk.py says where"


def test_every_method_a_program_calls_is_in_it() -> None:
    for section in ("Clients and topics", "Producers", "Queues", "Routers"):
        for owner in (getattr(topics, name) for name in SECTIONS[section]):
            methods = [name for name, value in vars(owner).items() if inspect.isfunction(value) and name[0] != "_"]
            assert [name for name in methods if f"#### {owner.__name__}.{name}\n" not in TEXT] == []


def test_signatures_are_as_they_are_called() -> None:
    assert "await topic.state(*, partition: int = 0, touch: bool = True) -> TopicState" in TEXT
    assert "topic.producer(**options: ProducerFields) -> TopicProducer" in TEXT


def test_examples_keep_their_shape() -> None:
    assert "async with client.producer() as producer:\n    await producer.send(" in TEXT


def test_every_error_is_in_it() -> None:
    names = [value.__name__ for value in vars(errors).values() if isinstance(value, type)]
    assert {"Damaged", "TopicsError"} <= set(names)
    assert [name for name in names if name != "TopicsError" and f"`{name}`" not in TEXT] == []
