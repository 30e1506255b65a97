"""`python -m topics` is the `topics` command."""

from topics.cli import main

main()
