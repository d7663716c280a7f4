-- Version 5: sums of a large outbox, so that a start need not read it all, what expires when,
-- and what the fleet has asked for again.
-- outbox_totals holds what waited with an id up to up_to; without a row the outbox is counted.

CREATE TABLE outbox_totals (
    stream TEXT PRIMARY KEY NOT NULL,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    up_to INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_expiry ON outbox (time + 1000 * message_expiry)
    WHERE message_expiry IS NOT NULL;

CREATE INDEX outbox_recall ON outbox (id) WHERE lane = 'recall';
