"""LIKE by its definition, on the pattern as written: a table of what matches what."""


def like(text: str, pattern: str, escape: str | None = None) -> bool:
    """Each row of the table says which prefixes of the text the pattern so far matches."""
    prefixes = [True] + [False] * len(text)
    code_points = iter(pattern)
    for code_point in code_points:
        if code_point == escape:
            prefixes = _then_literal(prefixes, text, next(code_points))
        elif code_point == "%":
            prefixes = [any(prefixes[: length + 1]) for length in range(len(prefixes))]
        elif code_point == "_":
            prefixes = [False, *prefixes[:-1]]
        else:
            prefixes = _then_literal(prefixes, text, code_point)
    return prefixes[-1]


def _then_literal(prefixes: list[bool], text: str, literal: str) -> list[bool]:
    matched = zip(prefixes, text, strict=False)
    return [False, *(matches and code_point == literal for matches, code_point in matched)]
