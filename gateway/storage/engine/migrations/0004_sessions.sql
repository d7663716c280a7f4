-- Version 4: persistent sessions, what they are owed, retained messages and wills.
-- A message that several sessions are owed stands in message once. Times are wall milliseconds.

CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    client_id TEXT NOT NULL UNIQUE,
    expiry_interval INTEGER NOT NULL,
    username TEXT,
    left_at INTEGER
) STRICT;

CREATE TABLE subscription (
    session INTEGER NOT NULL,
    topic_filter TEXT NOT NULL,
    qos INTEGER NOT NULL,
    no_local INTEGER NOT NULL,
    retain_as_published INTEGER NOT NULL,
    identifier INTEGER,
    expression TEXT,
    identity INTEGER NOT NULL,
    PRIMARY KEY (session, topic_filter)
) STRICT, WITHOUT ROWID;

CREATE TABLE message (
    id INTEGER PRIMARY KEY,
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
    user_properties TEXT
) STRICT;

-- place: the order in which a session is owed; packet_id: 0 until it is known to be sent with one.
CREATE TABLE delivery (
    session INTEGER NOT NULL,
    place INTEGER NOT NULL,
    message INTEGER NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    packet_id INTEGER NOT NULL,
    released INTEGER NOT NULL,
    identifiers TEXT,
    shared_filter TEXT,
    PRIMARY KEY (session, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE incoming (
    session INTEGER NOT NULL,
    packet_id INTEGER NOT NULL,
    PRIMARY KEY (session, packet_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE retained (
    topic TEXT PRIMARY KEY NOT NULL,
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
    user_properties TEXT
) STRICT;

-- due: when the will is to be published, once its client is gone.
CREATE TABLE will (
    client_id TEXT PRIMARY KEY NOT NULL,
    username TEXT,
    due INTEGER,
    delay INTEGER NOT NULL,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    content_type TEXT,
    response_topic TEXT,
    correlation_data BLOB,
    message_expiry INTEGER,
    payload_format INTEGER,
    user_properties TEXT
) STRICT;
