"""Topics with places that are filled for each message."""

import re

from gateway.config.checks import TOPIC_PLACE


def fill(template: str, gateway_id: str, topic: str) -> str:
    """Return `template` with its places filled for a message on `topic`.

    `{gateway}` is the gateway id, `{topic}` the whole topic, `{2}` its second level and `{2+}` its
    levels from the second on. Levels that the topic does not have are empty.
    """
    levels = topic.split("/")

    def value(place: re.Match[str]) -> str:
        name, number, more = place.groups()
        if name is not None:
            return gateway_id if name == "gateway" else topic
        first = int(number) - 1
        return "/".join(levels[first:] if more else levels[first : first + 1])

    return TOPIC_PLACE.sub(value, template)
