from dataclasses import fields

from gateway.app.broker_settings import broker_settings, subscription_filters
from gateway.broker.settings import BrokerSettings
from gateway.broker.subscribing.subscription_filters import SubscriptionFilter
from gateway.config.settings import BrokerConfig, Configuration, SubscriptionFilterConfig

TABLES = {
    "subscription_filters",
    "durability",
    "default_durability",
    "memory_limit",
    "delivery",
    "channels",
}
"""What has tables of its own in the configuration."""

ELSEWHERE = {"sys_interval", "unconfigured_channels", "maximum_channels"}
"""What the configuration calls the broker's, and others use."""


def test_without_a_configuration_the_defaults_hold() -> None:
    assert broker_settings(BrokerConfig()) == BrokerSettings()


def test_every_setting_can_be_configured() -> None:
    known = {field.name for field in fields(BrokerSettings)} - TABLES
    assert known == {field.name for field in fields(BrokerConfig)} - ELSEWHERE


def test_what_is_configured_arrives() -> None:
    settings = broker_settings(BrokerConfig(maximum_inflight=3, p2p=True, connect_timeout=7))
    assert settings == BrokerSettings(maximum_inflight=3, p2p=True, connect_timeout=7)


def test_subscription_filters_arrive_in_their_order() -> None:
    tables = (SubscriptionFilterConfig("a", "b", "c"), SubscriptionFilterConfig("d", "e", "f"))
    configuration = Configuration("file", "barn", subscription_filters=tables)
    assert subscription_filters(configuration) == (
        SubscriptionFilter("a", "b", "c"),
        SubscriptionFilter("d", "e", "f"),
    )
