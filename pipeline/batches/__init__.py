"""A batch from its landing files to its commit: bronze, silver, quarantine."""
