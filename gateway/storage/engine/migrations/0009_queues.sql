-- Version 9: queues that are larger than memory.
-- size: the bytes that the delivery takes here, its message included; alone: 1 if no other session
-- is owed its message; expires: wall milliseconds, NULL for never.

ALTER TABLE delivery ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery ADD COLUMN alone INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery ADD COLUMN expires INTEGER;

UPDATE delivery SET
    size = coalesce(
        (SELECT 96 + length(topic) + length(payload) FROM message AS m WHERE m.id = delivery.message), 96
    ),
    expires = (
        SELECT received_at + 1000 * message_expiry FROM message AS m WHERE m.id = delivery.message
    );

-- Who else is owed a message: only asked of those that several were owed.
CREATE INDEX delivery_shared ON delivery (message) WHERE alone = 0;

CREATE INDEX delivery_expires ON delivery (expires, session, place) WHERE expires IS NOT NULL;
