import pytest

from gateway.config.quantities import bytes_a_day, size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1B", 1),
        ("500kB", 500_000),
        ("20MB", 20_000_000),
        ("1.5GB", 1_500_000_000),
        ("2TB", 2_000_000_000_000),
        ("256MiB", 256 * 1024**2),
        ("0.5KiB", 512),
        ("1GiB", 1024**3),
        ("1TiB", 1024**4),
    ],
)
def test_a_size_has_a_unit(text: str, count: int) -> None:
    assert size(text) == count
    assert bytes_a_day(f"{text}/day") == count


@pytest.mark.parametrize(
    "value",
    [
        "",
        "20",
        "20 MB",
        "0MB",
        "0.4B",
        "-1MB",
        "1e3MB",
        "20mb",
        "20Mb",
        "20MB\n",
        "٣MB",
        20,
        None,
        True,
    ],
)
def test_anything_else_is_no_size(value: object) -> None:
    with pytest.raises(ValueError, match="a size above 0 such as"):
        size(value)
    with pytest.raises(ValueError, match="a size a day such as"):
        bytes_a_day(f"{value}/day" if isinstance(value, str) else value)


@pytest.mark.parametrize("value", ["20MB", "20MB/hour", "20MB/Day", "/day", "20MB/day/day"])
def test_a_rate_is_a_size_a_day(value: str) -> None:
    with pytest.raises(ValueError, match="a size a day such as"):
        bytes_a_day(value)
