"""The simulator: one seed, one life of the whole server, with everything that can go wrong.

    python -m topics.testing.sim --seed 4711

The clock, the disk, the network, the order of all steps and everything that clients do come from the seed. What runs is
the real server. The history of what clients sent and were told is given to `topics.testing.checkers`.
"""
