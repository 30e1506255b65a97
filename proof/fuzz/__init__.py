"""Fuzzing: every decoder gets bytes that nobody would send, and answers with a value or one of its declared errors.

How it works. A `Target` is a decoder with its seeds, the words of its language and the errors that it may raise. A
`Search` keeps a corpus: it changes one of its inputs (`mutation.py`), runs the decoder, and keeps what reached an arc,
a step from one line to another, that nothing before has reached (`arcs.py`). What raises anything else, uses more CPU
time or memory than its size allows, or does not survive a round trip, is a crash. It is made as small as it can be and
kept. All inputs are run; their arcs are looked at for one in so many, and for each that went a way of its own.

    target.py     what is fuzzed                    targets/   all of them, a file a language
    mutation.py   changes of an input               arcs.py    which lines follow which
    trial.py      one run, and what came of it      search.py  many, from a seed
    shrinking.py  smaller inputs that do the same   corpus.py  inputs in files
    pieces.py     bytes as they come                worker.py  a search in a process
    ledger.py     what was done, in build/proof     command.py `python -m proof fuzz`

The corpus in `tests/fuzz/corpus` is replayed with the tests, and searched from for a moment; `make fuzz` goes on where
it left off until each decoder had ten million inputs.
"""
