"""Bytes that are not text, and text that looks as if it were not (MQTT 5, section 1.5.4)."""

NOT_TEXT = {
    "a continuation byte alone": b"\x80",
    "a byte that begins nothing": b"\xff",
    "a character cut short": b"\xe2\x82",
    "an overlong /": b"\xc0\xaf",
    "an overlong / of three bytes": b"\xe0\x80\xaf",
    "an overlong / of four bytes": b"\xf0\x80\x80\xaf",
    "an overlong U+0000": b"\xc0\x80",
    "U+D800": b"\xed\xa0\x80",
    "U+DFFF": b"\xed\xbf\xbf",
    "a pair of surrogates": b"\xed\xa0\x81\xed\xb0\x80",
    "U+110000": b"\xf4\x90\x80\x80",
    "U+1FFFFF": b"\xf7\xbf\xbf\xbf",
    "a character of five bytes": b"\xf8\x88\x80\x80\x80",
}
"""[MQTT-1.5.4-1], and in MQTT 3.1.1 [MQTT-1.5.3-1]."""

NULL = {"U+0000": b"\x00", "U+0000 within": b"a\x00b"}
"""[MQTT-1.5.4-2], and in MQTT 3.1.1 [MQTT-1.5.3-2]."""

TEXT = {
    "two bytes": "é",
    "three bytes": "€",
    "four bytes": "\U0001f321",
    "U+D7FF, U+E000": "\ud7ff\ue000",
    "U+10FFFF": "\U0010ffff",
    "composed and decomposed": "\u00e9e\u0301",
    "a byte order mark": "\ufeff",
    "a byte order mark within": "a\ufeffb",
    "a space": " ",
}
"""Text that stays as it is."""
