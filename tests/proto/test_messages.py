from __future__ import annotations

import subprocess
import sys

from topics.proto import messages as proto


def test_the_methods_of_each_service() -> None:
    heaps, disheap = proto.methods_of(proto.HEAPS), proto.methods_of(proto.DISHEAP)
    work, pop = heaps["Work"], heaps["Pop"]
    assert (work.path, work.client_streams, work.server_streams) == ("/topics.v1.Heaps/Work", True, True)
    assert (pop.path, pop.client_streams, pop.server_streams) == ("/topics.v1.Heaps/Pop", False, False)
    assert pop.request is proto.PopReq and pop.response is proto.WorkItems
    assert disheap["Enqueue"].request is proto.EnqueueReq and disheap["Enqueue"].path == "/disheap.v1.Disheap/Enqueue"
    assert all(name == method.name for methods in (heaps, disheap) for name, method in methods.items())


def test_the_names_are_left_to_a_client_that_is_generated_from_the_same_contract() -> None:
    """In a process of its own: tests of such clients take the names of this one."""
    program = (
        "from google.protobuf import descriptor_pool\n"
        "from topics.proto import messages\n"
        "messages.methods_of(messages.DISHEAP)\n"
        "descriptor_pool.Default().FindMessageTypeByName('disheap.v1.EnqueueReq')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "KeyError" in done.stderr.splitlines()[-1]
