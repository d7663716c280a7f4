"""Why a row is in the quarantine; docs/use/pipeline-tables.md explains each to the user."""

NOT_JSON = "not_json"
NOT_AN_OBJECT = "not_an_object"
LINE_TOO_LONG = "line_too_long"
KEY_INCOMPLETE = "key_incomplete"
KEY_INVALID = "key_invalid"
TIME_INVALID = "time_invalid"
PAYLOAD_INVALID = "payload_invalid"
FIELD_INVALID = "field_invalid"
KEY_CONFLICT = "key_conflict"
TRUNCATED = "truncated"
SURPLUS_LINES = "surplus_lines"
FILE_NAME = "file_name"
FOLDER_MISMATCH = "folder_mismatch"
NAME_MISMATCH = "name_mismatch"
FILE_UNREADABLE = "file_unreadable"
LEDGER_INVALID = "ledger_invalid"
CLOCK_INVALID = "clock_invalid"

OF_A_LINE = (
    NOT_JSON,
    NOT_AN_OBJECT,
    LINE_TOO_LONG,
    KEY_INCOMPLETE,
    KEY_INVALID,
    TIME_INVALID,
    PAYLOAD_INVALID,
    FIELD_INVALID,
    LEDGER_INVALID,
    CLOCK_INVALID,
)
"""The line is here instead of in bronze."""
OF_A_RECORD = (KEY_CONFLICT,)
"""The record is in bronze too."""
OF_A_FILE = (TRUNCATED, SURPLUS_LINES, FILE_NAME, FOLDER_MISMATCH, NAME_MISMATCH, FILE_UNREADABLE)
"""One row a file, beside the rows that its lines gave."""
