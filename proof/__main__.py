"""`python -m proof COMMAND`: a command is a function in a file of its own, imported when it is asked for."""

from __future__ import annotations

import sys

from cyclopts import App

COMMANDS = {
    "coverage": "proof.coverage:coverage",
    "faults": "proof.faults.command:faults",
    "fuzz": "proof.fuzz.command:fuzz",
    "mutants": "proof.mutants.command:mutants",
    "page": "proof.page.command:page",
    "security": "proof.security:security",
    "soak": "proof.soak.command:soak",
}

app = App(name="proof", help="Run what docs/PROOF.md tells of, and write it.", help_format="markdown", version_flags=())
for name, place in COMMANDS.items():
    app.command(place, name=name)

if __name__ == "__main__":
    sys.exit(app(result_action="return_value"))
