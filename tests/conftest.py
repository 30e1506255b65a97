"""What holds for all tests.

Hypothesis profiles: the default draws the same examples on every run, so a red `make test` is red again;
`soak` searches at random and for longer. Neither has a deadline: time is not what these tests measure."""

from __future__ import annotations

import signal
from os import environ

from hypothesis import settings

# A shell that starts the tests behind itself has them ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The Sparks of tests live for seconds: thorough compiling and parallel collecting would cost more than they bring.
for _options in ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    environ.setdefault(_options, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

settings.register_profile("default", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("soak", deadline=None, max_examples=5_000, print_blob=True)
settings.load_profile(environ.get("HYPOTHESIS_PROFILE", "default"))
