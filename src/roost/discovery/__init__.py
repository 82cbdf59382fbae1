"""Who exists, and who is alive."""
