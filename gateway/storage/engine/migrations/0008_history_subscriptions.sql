-- Version 8: the subscriptions that there were while history was written.
-- since: history.id of the last message before the subscription; until: of the last one that it
-- could get, NULL while it lasts.

CREATE TABLE history_subscriptions (
    id INTEGER PRIMARY KEY,
    since INTEGER NOT NULL,
    until INTEGER,
    client_id TEXT NOT NULL,
    topic_filter TEXT NOT NULL,
    qos INTEGER NOT NULL,
    no_local INTEGER NOT NULL,
    expression TEXT,
    identity INTEGER NOT NULL
) STRICT;

CREATE INDEX history_subscriptions_until ON history_subscriptions (until)
    WHERE until IS NOT NULL;
