"""The long runs, one after the other: `make soak`."""
