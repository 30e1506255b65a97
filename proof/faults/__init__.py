"""The catalogue of faults: what can go wrong, and the test that shows what happens then."""
