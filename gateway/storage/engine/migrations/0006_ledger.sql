-- Version 6: how numbered messages ended, until the fleet knows; the starts that gave the numbers.
-- starts.last has the last numbers on disk, {stream: number}; starts.previous is {"epoch", "last"}
-- of the start before, as it stood when this one began. ledger.id rises from range to range.

CREATE TABLE starts (
    start INTEGER PRIMARY KEY,
    epoch TEXT NOT NULL,
    previous TEXT,
    last TEXT NOT NULL,
    announced INTEGER NOT NULL
) STRICT;

CREATE TABLE ledger (
    epoch TEXT NOT NULL,
    stream TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    fate TEXT NOT NULL,
    cause TEXT NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (epoch, stream, first)
) STRICT, WITHOUT ROWID;
