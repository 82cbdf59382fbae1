"""Who waits, and who may enter now."""
