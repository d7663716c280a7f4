-- Version 1: what the gateway knows of itself, the outbox, what the fleet refused, frames seen.

CREATE TABLE meta (
    name TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    epoch TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    lane TEXT NOT NULL,
    time INTEGER NOT NULL,
    size INTEGER NOT NULL,
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

CREATE TABLE rejected (
    id INTEGER PRIMARY KEY,
    code INTEGER NOT NULL,
    rejected_at INTEGER NOT NULL,
    epoch TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    lane TEXT NOT NULL,
    time INTEGER NOT NULL,
    size INTEGER NOT NULL,
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

CREATE TABLE node_frames (
    node TEXT NOT NULL,
    boot INTEGER NOT NULL,
    used INTEGER NOT NULL,
    highest INTEGER NOT NULL,
    seen BLOB NOT NULL,
    PRIMARY KEY (node, boot)
) STRICT, WITHOUT ROWID;
