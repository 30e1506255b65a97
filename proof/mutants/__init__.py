"""Mutants: changes that each break one promise, and must be noticed by the tests. `ALL` is the list of them."""

from __future__ import annotations

from proof.mutants.access import ACCESS
from proof.mutants.core import CORE
from proof.mutants.edges import EDGES
from proof.mutants.engine import ENGINE
from proof.mutants.intake import INTAKE
from proof.mutants.mutant import Mutant
from proof.mutants.server import SERVER
from proof.mutants.sql import SQL
from proof.mutants.storage import STORAGE
from proof.mutants.time import TIME
from proof.mutants.volatile import VOLATILE

ALL: tuple[Mutant, ...] = (
    *ACCESS,
    *CORE,
    *EDGES,
    *ENGINE,
    *INTAKE,
    *SERVER,
    *SQL,
    *STORAGE,
    *TIME,
    *VOLATILE,
)
