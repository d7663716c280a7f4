from dataclasses import fields

from gateway.app.broker_settings import broker_settings
from gateway.broker.settings import BrokerSettings
from gateway.config.settings import BrokerConfig

FIXED = {"maximum_filtered_subscriptions", "maximum_expressions"}
"""Limits of the language `$where`, which the configuration leaves alone."""

ELSEWHERE = {"sys_interval"}
"""What the configuration calls the broker's, and others use."""


def test_without_a_configuration_the_defaults_hold() -> None:
    assert broker_settings(BrokerConfig()) == BrokerSettings()


def test_every_setting_can_be_configured() -> None:
    known = {field.name for field in fields(BrokerSettings)} - FIXED
    assert known == {field.name for field in fields(BrokerConfig)} - ELSEWHERE


def test_what_is_configured_arrives() -> None:
    settings = broker_settings(BrokerConfig(maximum_inflight=3, p2p=True, connect_timeout=7))
    assert settings == BrokerSettings(maximum_inflight=3, p2p=True, connect_timeout=7)
