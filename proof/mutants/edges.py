"""Mutants of what stands between callers and the engine: types of arguments, bodies, and processes that fork."""

from __future__ import annotations

from proof.mutants.mutant import Mutant

_TYPES = "topics/argumenttypes.py"
_TESTS = "tests/test_argumenttypes.py"

EDGES = (
    Mutant(
        "argument-of-any-type-stored",
        "what the engine in a process is handed has the type that its verb declares",
        _TYPES,
        "    return type(value) is int or (isinstance(value, int) and not isinstance(value, bool))\n",
        "    return isinstance(value, int | float)\n",
        (_TESTS + "::test_what_would_have_been_stored_is_refused_and_the_directory_opens_again",),
    ),
    Mutant(
        "lone-surrogate-stored",
        "a text that no file can hold comes no further than the verb",
        _TYPES,
        "    return isinstance(value, str) and (value.isascii() or _encodes(value))\n",
        "    return isinstance(value, str)\n",
        (_TESTS + "::test_what_would_have_been_stored_is_refused_and_the_directory_opens_again",),
    ),
    Mutant(
        "argument-checked-by-the-first-of-its-kind",
        "a request that fits does not let others in",
        _TYPES,
        "        if all(each in at_once for (_, at_once, _), each in zip(parts, types, strict=True)):\n",
        "        if parts:\n",
        (_TESTS + "::test_a_type_that_fits_once_does_not_let_others_in",),
    ),
    Mutant(
        "blank-body-taken-for-none",
        "a body of blanks deletes nothing",
        "topics/wire/queue.py",
        '    parsed = _decode(_discards, body or b"{}")\n',
        '    parsed = _decode(_discards, body.strip() or b"{}")\n',
        ("tests/wire/test_json.py::test_a_blank_body_is_not_one_that_is_left_out",),
    ),
    Mutant(
        "client-closed-by-a-forked-process",
        "a client is closed by the process that has opened it",
        "topics/sync.py",
        "        if self._portal.is_inherited:\n            return\n",
        "",
        ("tests/test_sync.py::test_a_forked_process_is_told_that_the_client_is_not_its_own",),
    ),
)
