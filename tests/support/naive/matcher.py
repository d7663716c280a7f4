"""Topic matching straight from the words of MQTT 5, section 4.7: slow, and plain to check."""


def matches(topic_filter: str, topic: str) -> bool:
    if topic.startswith("$") and topic_filter[0] in "+#":
        return False
    return _levels_match(topic_filter.split("/"), topic.split("/"))


def _levels_match(wanted: list[str], levels: list[str]) -> bool:
    if wanted == ["#"]:
        return True
    if not wanted or not levels:
        return wanted == levels or (not levels and wanted[:1] == ["#"])
    return wanted[0] in ("+", levels[0]) and _levels_match(wanted[1:], levels[1:])
