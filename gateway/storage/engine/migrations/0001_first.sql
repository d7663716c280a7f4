-- All tables of the first release. Times are milliseconds since 1970 unless a column says otherwise.
--
-- Tables that hold messages share the columns from `topic` on, in this order
-- (engine/message_columns.py): topic, payload, qos, retain, time (when the gateway accepted it),
-- client_id, username, content_type, response_topic, correlation_data, message_expiry (seconds),
-- payload_format, user_properties (a JSON array of pairs).

-- Single numbers that the gateway remembers of itself.
CREATE TABLE meta (
    name TEXT PRIMARY KEY NOT NULL,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;


-- Sessions -----------------------------------------------------------------------------------

CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    client_id TEXT NOT NULL UNIQUE,
    expiry_interval INTEGER NOT NULL,
    username TEXT,
    left_at INTEGER
) STRICT;

-- awaits_retained: 1 while retained messages that it asked for are still to come. Sending many
-- takes several turns; what a crash interrupts begins again.
CREATE TABLE subscription (
    session INTEGER NOT NULL,
    topic_filter TEXT NOT NULL,
    qos INTEGER NOT NULL,
    no_local INTEGER NOT NULL,
    retain_as_published INTEGER NOT NULL,
    identifier INTEGER,
    expression TEXT,
    identity INTEGER NOT NULL,
    awaits_retained INTEGER NOT NULL,
    deliver TEXT,
    PRIMARY KEY (session, topic_filter)
) STRICT, WITHOUT ROWID;

-- A message that several sessions are owed is here once.
-- version: if set, the payload is PUBLISH packets of that protocol version, one behind the other.
CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    time INTEGER NOT NULL,
    client_id TEXT,
    username TEXT,
    content_type TEXT,
    response_topic TEXT,
    correlation_data BLOB,
    message_expiry INTEGER,
    payload_format INTEGER,
    user_properties TEXT,
    version INTEGER
) STRICT;

-- What one session is owed of one row of `message`, which may be many messages.
-- sequence: the number of the last of them in the order in which the session is owed; those before
--   it have the numbers before that.
-- packet_id: that of the last; 0 until it is known to be sent with one.
-- size: the bytes that it takes here, its messages included.
-- alone: 1 if no other session is owed its message.
-- expires: NULL for never.
-- messages: how many the row still stands for.
-- gone: a bit for each that it stood for and does not any more, the first message's the lowest;
--   NULL for none.
CREATE TABLE delivery (
    session INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    message INTEGER NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    packet_id INTEGER NOT NULL,
    released INTEGER NOT NULL,
    identifiers TEXT,
    shared_filter TEXT,
    size INTEGER NOT NULL,
    alone INTEGER NOT NULL,
    expires INTEGER,
    messages INTEGER NOT NULL DEFAULT 1,
    gone BLOB,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;

-- Who else is owed a message: only asked of those that several were owed.
CREATE INDEX delivery_shared ON delivery (message) WHERE alone = 0;

CREATE INDEX delivery_expires ON delivery (expires, session, sequence) WHERE expires IS NOT NULL;

-- Packet identifiers of QoS 2 messages that a client sent and has not released.
CREATE TABLE incoming (
    session INTEGER NOT NULL,
    packet_id INTEGER NOT NULL,
    PRIMARY KEY (session, packet_id)
) STRICT, WITHOUT ROWID;

-- How often a message of a channel was given out; none for those that were not, or that nobody had
-- long enough.
CREATE TABLE attempt (
    session INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;

-- In the order in which their topics came: the gateway knows the row of each topic. An index would
-- cost more than the messages: a hundred topics stand in a hundred places of it, and each is a page
-- that a commit has to write. id comes last so that a row begins with its topic, which no other
-- table's does: salvage knows its pages by that.
CREATE TABLE retained (
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    time INTEGER NOT NULL,
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

-- due: when the will is to be published, once its client is gone; delay: in seconds.
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


-- Outbox ---------------------------------------------------------------------------------------

-- indexed: 1 if the gateway had several streams when the row came, or has had since.
-- uplinks: the names of those that have not taken it, each between commas; NULL where there is one.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    epoch TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    lane TEXT NOT NULL,
    indexed INTEGER NOT NULL,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    time INTEGER NOT NULL,
    client_id TEXT,
    username TEXT,
    content_type TEXT,
    response_topic TEXT,
    correlation_data BLOB,
    message_expiry INTEGER,
    payload_format INTEGER,
    user_properties TEXT,
    uplinks TEXT
) STRICT;

-- Without several streams nobody asks for the rows of one, and a commit writes a page less.
CREATE INDEX outbox_stream ON outbox (stream) WHERE indexed = 1;

CREATE INDEX outbox_expiry ON outbox (time + 1000 * message_expiry)
    WHERE message_expiry IS NOT NULL;

CREATE INDEX outbox_recall ON outbox (id) WHERE lane = 'recall';

-- So that a start counts what waits for each of several uplinks without reading the messages.
CREATE INDEX outbox_uplinks ON outbox (uplinks) WHERE uplinks IS NOT NULL;

-- Sums of a large outbox, so that a start need not read it all: what waited with an id up to up_to.
-- Without a row the outbox is counted.
CREATE TABLE outbox_totals (
    stream TEXT PRIMARY KEY NOT NULL,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    up_to INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Steps of the wall clock, in ms, negative where it was set back, since the rows with an id up to last_id came.
CREATE TABLE outbox_steps (
    last_id INTEGER PRIMARY KEY,
    step INTEGER NOT NULL
) STRICT;

-- What the fleet refused, with its reason code.
CREATE TABLE rejected (
    id INTEGER PRIMARY KEY,
    code INTEGER NOT NULL,
    rejected_at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    epoch TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    lane TEXT NOT NULL,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    time INTEGER NOT NULL,
    client_id TEXT,
    username TEXT,
    content_type TEXT,
    response_topic TEXT,
    correlation_data BLOB,
    message_expiry INTEGER,
    payload_format INTEGER,
    user_properties TEXT
) STRICT;


-- Ledger ---------------------------------------------------------------------------------------

-- last: the last numbers on disk, {stream: number}; previous: {"epoch", "last"} of the start
-- before, as it stood when this one began.
CREATE TABLE starts (
    start INTEGER PRIMARY KEY,
    epoch TEXT NOT NULL,
    previous TEXT,
    last TEXT NOT NULL,
    announced INTEGER NOT NULL
) STRICT;

-- How numbered messages ended, until the fleet knows. id rises from range to range.
-- uplink: the name of that of several at which they ended so, empty where there is one.
CREATE TABLE ledger (
    epoch TEXT NOT NULL,
    stream TEXT NOT NULL,
    first INTEGER NOT NULL,
    uplink TEXT NOT NULL,
    last INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (epoch, stream, first, uplink)
) STRICT, WITHOUT ROWID;


-- History --------------------------------------------------------------------------------------

-- id counts the bytes that were recorded up to and with the row.
CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    start INTEGER NOT NULL,
    rules TEXT NOT NULL,
    payload_is_json INTEGER NOT NULL,
    epoch TEXT NOT NULL,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    qos INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    time INTEGER NOT NULL,
    client_id TEXT,
    username TEXT,
    content_type TEXT,
    response_topic TEXT,
    correlation_data BLOB,
    message_expiry INTEGER,
    payload_format INTEGER,
    user_properties TEXT
) STRICT;

-- The rules that each start of the gateway had.
CREATE TABLE history_rules (
    start INTEGER NOT NULL,
    place INTEGER NOT NULL,
    stream TEXT NOT NULL,
    topic TEXT NOT NULL,
    expression TEXT,
    lane TEXT NOT NULL,
    PRIMARY KEY (start, place)
) STRICT, WITHOUT ROWID;

-- The subscriptions that there were while history was written. since: history.id of the last
-- message before the subscription; until: of the last one that it could get, NULL while it lasts.
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


-- What other parts remember --------------------------------------------------------------------

-- Frames of serial nodes that were taken.
CREATE TABLE node_frames (
    node TEXT NOT NULL,
    boot INTEGER NOT NULL,
    used INTEGER NOT NULL,
    highest INTEGER NOT NULL,
    seen BLOB NOT NULL,
    PRIMARY KEY (node, boot)
) STRICT, WITHOUT ROWID;

-- The last encryption counter of devices that advertise, by the hash of their key.
CREATE TABLE packet_counters (
    address TEXT NOT NULL,
    key BLOB NOT NULL,
    used INTEGER NOT NULL,
    counter INTEGER NOT NULL,
    PRIMARY KEY (address, key)
) STRICT, WITHOUT ROWID;

-- What uplink rules remember of each topic, by rule epoch.
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

-- Spans of time in which the wall clock ran on without a step. offset_ms is wall time less time
-- since boot; ends is NULL of the span that runs, or ran when its start of the gateway ended.
CREATE TABLE clock_spans (
    id INTEGER PRIMARY KEY,
    boot TEXT NOT NULL,
    epoch TEXT NOT NULL,
    offset_ms INTEGER NOT NULL,
    begins INTEGER NOT NULL,
    ends INTEGER,
    numbers TEXT NOT NULL
) STRICT;

-- What the fleet has to hear of them.
CREATE TABLE clock_records (
    id INTEGER PRIMARY KEY,
    record TEXT NOT NULL
) STRICT;
