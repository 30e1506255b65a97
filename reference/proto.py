"""`topics/proto/descriptors.py`: the `.proto` files as protoc understands them, in a form that Python can import.

Checked in, so that who installs the package needs no compiler; a test compiles again and compares.
"""

from __future__ import annotations

import base64
import textwrap
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).parents[1] / "topics" / "proto"
FILES: Final = ("disheap/v1/disheap.proto", "topics/v1/heaps.proto")
COLUMNS: Final = 100

HEADING: Final = '''"""The `.proto` files of this directory, compiled: a FileDescriptorSet as base64, by `make docs`."""

from __future__ import annotations

from typing import Final

DESCRIPTORS: Final = """
'''


def compiled(root: Path = ROOT) -> bytes:
    """The descriptors of the files, and of those they import."""
    protoc = import_module("grpc_tools.protoc")
    tools = Path(str(protoc.__file__)).parent / "_proto"
    with TemporaryDirectory() as directory:
        made = Path(directory) / "descriptors"
        paths = [f"--proto_path={root}", f"--proto_path={tools}"]
        code = protoc.main(["protoc", *paths, "--include_imports", f"--descriptor_set_out={made}", *FILES])
        assert code == 0, f"protoc ended with {code}"
        return made.read_bytes()


def as_module() -> str:
    text = base64.b64encode(compiled()).decode()
    return HEADING + "\n".join(textwrap.wrap(text, COLUMNS)) + '\n"""\n'
