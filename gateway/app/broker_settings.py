"""Makes the broker's settings from the configuration."""

from dataclasses import fields

from gateway.broker.settings import BrokerSettings
from gateway.broker.subscribing.subscription_filters import SubscriptionFilter
from gateway.config.settings import BrokerConfig, Configuration


def broker_settings(config: BrokerConfig) -> BrokerSettings:
    """Return the settings that have the same name in both; the others keep their defaults."""
    names = {field.name for field in fields(BrokerSettings)}
    return BrokerSettings(
        **{
            field.name: getattr(config, field.name)
            for field in fields(BrokerConfig)
            if field.name in names
        }
    )


def subscription_filters(configuration: Configuration) -> tuple[SubscriptionFilter, ...]:
    """Return the expressions that are attached to clients' subscriptions, in their order."""
    return tuple(
        SubscriptionFilter(each.client, each.filter, each.where)
        for each in configuration.subscription_filters
    )
