"""Runs and what surrounds them: Spark's session, status, maintenance, views, copies."""
