-- Version 3: the history of messages, and the rules that each start of the gateway had.
-- history.id counts the bytes that were recorded up to and with the row.

CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    start INTEGER NOT NULL,
    rules TEXT NOT NULL,
    payload_is_json INTEGER NOT NULL,
    epoch TEXT NOT NULL,
    time INTEGER NOT NULL,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    content_type TEXT,
    response_topic TEXT,
    correlation_data BLOB,
    message_expiry INTEGER,
    payload_format INTEGER,
    user_properties TEXT,
    client_id TEXT,
    username TEXT
) STRICT;

CREATE TABLE history_rules (
    start INTEGER NOT NULL,
    place INTEGER NOT NULL,
    stream TEXT NOT NULL,
    topic TEXT NOT NULL,
    expression TEXT,
    lane TEXT NOT NULL,
    PRIMARY KEY (start, place)
) STRICT, WITHOUT ROWID;
