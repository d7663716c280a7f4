"""A gateway's own SQLite file as records: for recall, forensics and a first import."""
