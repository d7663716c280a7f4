"""Files that are no configuration at all."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.configuration import Configuration
from gateway.config.errors import ConfigurationError
from gateway.config.load import load, read_document
from tests.support.configurations import Load


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(tmp_path / "none.toml")
    assert str(raised.value) == f"{tmp_path / 'none.toml'}: No such file or directory"


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"^{tmp_path}: Is a directory$"):
        load(tmp_path)


def test_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"# \xff")
    with pytest.raises(ConfigurationError, match=f"^{path}: not UTF-8 at byte 2$"):
        load(path)


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b'\xef\xbb\xbf[gateway]\nid = "barn"\n')
    assert load(path).gateway_id == "barn"


@pytest.mark.parametrize("text", ["[gateway", "a = ", "a = 1\na = 2", "a = " + "[" * 5_000])
def test_not_toml(read: Load, tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{tmp_path / 'gateway.toml'}: not TOML: ."):
        read(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "port", "rule", "topic", "url"]), inner, max_size=3
            )
        ),
        max_leaves=8,
    ),
    st.sampled_from(["gateway", "listener", "broker", "uplink", "serial", "simulator"]),
)
def test_whatever_a_file_holds_there_is_one_kind_of_error(value: object, section: str) -> None:
    configuration, mistakes = read_document("a file", {section: value})
    assert isinstance(configuration, Configuration)
    assert all("a file: " in str(mistake) for mistake in mistakes)
