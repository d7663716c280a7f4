-- What a person would want to have been told, the newest thousand. time, until: ms since 1970; until
-- is when it ended or happened last, NULL while it lasts. count: how often it happened.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    until INTEGER,
    severity TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    text TEXT NOT NULL,
    count INTEGER NOT NULL
) STRICT;
