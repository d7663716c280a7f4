-- Version 10: messages of a run that a session is owed, as one row.
-- messages: how many the delivery still stands for; place is that of the last, and those before it
-- have the places before that. gone: a bit for each that it stood for and does not any more, the
-- last message's the highest; NULL for none. version: the payload is PUBLISH packets of that
-- protocol version, one behind the other; NULL: it is one message's.

ALTER TABLE delivery ADD COLUMN messages INTEGER NOT NULL DEFAULT 1;
ALTER TABLE delivery ADD COLUMN gone BLOB;
ALTER TABLE message ADD COLUMN version INTEGER;
