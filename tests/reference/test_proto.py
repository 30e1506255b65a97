from __future__ import annotations

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from reference.proto import ROOT, compiled
from topics.proto.messages import FILES


def test_the_descriptors_are_those_of_the_files() -> None:
    """Compared as values: another protoc may write the same in other bytes."""
    fresh = FileDescriptorSet.FromString(compiled())
    assert list(fresh.file) == list(FILES), "topics/proto/descriptors.py is stale: run `make docs`"


def test_the_files_are_part_of_the_package() -> None:
    assert sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.proto")) == [
        "disheap/v1/disheap.proto",
        "topics/v1/heaps.proto",
    ]
