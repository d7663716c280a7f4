from gateway.config.errors import ConfigurationError
from gateway.settings.uplink import ReconnectSettings
from tests.support.table import table


@table(
    ("value", "shown"),
    [
        (("0 2 * * * for 1h",), " = ['0 2 * * * for 1h'] is not allowed"),
        (ReconnectSettings(minimum=5.0, maximum=120.0), ""),
        (None, ""),
    ],
)
def test_a_value_is_shown_as_toml_writes_it_and_a_table_is_not(value: object, shown: str) -> None:
    error = ConfigurationError("gw.toml", "uplink.key", value, "only with url")
    assert str(error) == f"gw.toml: uplink.key{shown}: only with url"
