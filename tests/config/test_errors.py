from gateway.config.errors import ConfigurationError


def test_a_list_is_shown_as_toml_writes_it() -> None:
    error = ConfigurationError("gw.toml", "uplink.schedule", ("0 2 * * * for 1h",), "only with url")
    reported = "gw.toml: uplink.schedule = ['0 2 * * * for 1h'] is not allowed: only with url"
    assert str(error) == reported
