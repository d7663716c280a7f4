import pytest

from gateway.config.errors import ConfigurationError
from gateway.settings.metrics import MetricsSettings
from tests.support.configurations import Load


def test_without_the_section_there_is_no_endpoint(read: Load) -> None:
    assert read("").metrics is None


def test_the_section_alone_is_enough(read: Load) -> None:
    assert read("[metrics]").metrics == MetricsSettings("127.0.0.1", 9234, None)


def test_names_of_the_machine(read: Load) -> None:
    settings = read("[metrics]\nhosts = ['barn.lan', '[fd00::1]']").metrics
    assert settings is not None
    assert settings.hosts == ("barn.lan", "[fd00::1]")


@pytest.mark.parametrize("host", ["127.0.0.2", "::1", "localhost"])
def test_on_loopback_everybody_may_read(read: Load, host: str) -> None:
    assert read(f"[metrics]\nhost = '{host}'\nport = 1").metrics == MetricsSettings(host, 1)


def test_beyond_loopback_it_is_said(read: Load) -> None:
    settings = "[metrics]\nhost = '0.0.0.0'\nallow_anonymous = true"
    assert read(settings).metrics == MetricsSettings("0.0.0.0", 9234, True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("host = '0.0.0.0'", "metrics.host = '0.0.0.0' is not allowed: everybody can read"),
        ("host = 'barn'", "metrics.host = 'barn' is not allowed: everybody can read"),
        ("allow_anonymous = false", "metrics.allow_anonymous = false is not allowed: there are"),
        ("host = ''", "metrics.host = '' is not allowed: a text that is not empty"),
        ("port = 0", "metrics.port = 0 is not allowed: a whole number from 1 to 65535"),
        (
            "hosts = ['barn.lan:80']",
            "metrics.hosts = ['barn.lan:80'] is not allowed: a list of host",
        ),
        ("hosts = ['a/b']", "metrics.hosts = ['a/b'] is not allowed: a list of host names"),
        ("path = '/x'", "metrics.path = '/x' is not allowed: unknown key"),
    ],
)
def test_mistakes(read: Load, settings: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(f"[metrics]\n{settings}")
    assert message in str(caught.value)
