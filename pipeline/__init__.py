"""The fleet's side: landing files become tables that can say of every sample where it ended."""
