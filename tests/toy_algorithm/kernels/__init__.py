"""The loops."""
