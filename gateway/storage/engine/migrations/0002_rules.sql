-- Version 2: what uplink rules remember of each topic, by rule epoch.

CREATE TABLE rules (
    epoch INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    topic TEXT NOT NULL,
    expression TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    layout INTEGER NOT NULL,
    complete INTEGER NOT NULL
) STRICT;

CREATE TABLE rule_memory (
    epoch INTEGER NOT NULL,
    topic TEXT NOT NULL,
    remembered TEXT NOT NULL,
    PRIMARY KEY (epoch, topic)
) STRICT, WITHOUT ROWID;
