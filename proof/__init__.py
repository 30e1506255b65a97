"""What makes docs/PROOF.md: the mutants, the catalogue of faults, the soak, and the page itself. Not shipped."""
