-- Version 7: spans of time in which the wall clock ran on without a step, and what the fleet has to
-- hear of them. clock_spans.offset_ms is wall time less time since boot; ends is null of the span
-- that runs, or ran when its start of the gateway ended.

CREATE TABLE clock_spans (
    id INTEGER PRIMARY KEY,
    boot TEXT NOT NULL,
    epoch TEXT NOT NULL,
    offset_ms INTEGER NOT NULL,
    begins INTEGER NOT NULL,
    ends INTEGER,
    numbers TEXT NOT NULL
) STRICT;

CREATE TABLE clock_records (
    id INTEGER PRIMARY KEY,
    record TEXT NOT NULL
) STRICT;
