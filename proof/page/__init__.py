"""docs/PROOF.md, made of the results of runs."""
