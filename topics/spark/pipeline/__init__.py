"""Pipelines on Spark: what statements declare on a server, run as Structured Streaming queries.

changesource.py   `format("topics_changes")`: changes of a table as a stream     changeoptions.py  its options
    deltareader.py deltachanges.py   Delta tables by their versions     pairing.py   images into changes
    outboxreader.py                  PostgreSQL and SQLite, out of the outbox of `topics cdc install`
    filereader.py                    new files are new rows             spool.py     what stays beside a checkpoint
routes.py         all routes of a table as one query     payloads.py   what a record of a change holds, as SQL
flows.py          a pipeline's query over topics         rowflows.py   records as rows of a table
    tablesource.py                   a table as it is now, for joins
mergesource.py    the sink that writes Delta tables      mergetable.py what a commit in one means
queries.py        how a definition becomes queries       changes.py    a table's changes as a DataFrame
runner.py         has them run                           strands.py      which queries the routes of a table need
job.py            the life of one pipeline               progress.py   how far a query is, in words and numbers
checkpoints.py    where positions are kept               tally.py      what queries have done, added up
definitions.py    what the server says and is told       stops.py      why a query ends for good
"""
