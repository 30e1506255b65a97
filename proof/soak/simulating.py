"""`python -m proof.soak.simulating`: the simulator as a part of the soak, which says how far it is."""

from __future__ import annotations

import sys

from proof.soak.progress import tell
from topics.testing.sim.__main__ import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], tell))
