"""The sub-commands of `tidegate-pipeline`, one a module."""
