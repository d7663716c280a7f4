"""Tables for people and dashboards, made from silver anew for every date that a batch touched."""
