"""Topic names and topic filters: what is valid, and what matches (MQTT 5, section 4.7)."""
