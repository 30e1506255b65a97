"""`python -m reference http`, `sdk` or `proto` prints that document."""

from __future__ import annotations

import sys

from reference import http, proto, sdk

DOCUMENTS = {"http": http.as_markdown, "sdk": sdk.as_markdown, "proto": proto.as_module}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in DOCUMENTS:
        sys.stderr.write(f"usage: python -m reference {'|'.join(DOCUMENTS)}\n")
        return 2
    sys.stdout.write(DOCUMENTS[arguments[0]]())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
