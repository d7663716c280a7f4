-- Version 11: retained messages stand on disk in the order in which their topics came.
-- The gateway knows the row of each topic. An index of them would cost more than the messages: a
-- hundred topics stand in a hundred places of it, and each is a page that a commit has to write.
-- id comes last so that a row still begins with its topic, which no other table's does.

ALTER TABLE retained RENAME TO retained_by_topic;

CREATE TABLE retained (
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    client_id TEXT,
    username TEXT,
    content_type TEXT,
    response_topic TEXT,
    correlation_data BLOB,
    message_expiry INTEGER,
    payload_format INTEGER,
    user_properties TEXT,
    id INTEGER PRIMARY KEY
) STRICT;

INSERT INTO retained (
    topic, payload, qos, retain, received_at, client_id, username, content_type, response_topic,
    correlation_data, message_expiry, payload_format, user_properties
)
SELECT
    topic, payload, qos, retain, received_at, client_id, username, content_type, response_topic,
    correlation_data, message_expiry, payload_format, user_properties
FROM retained_by_topic ORDER BY rowid;

DROP TABLE retained_by_topic;
