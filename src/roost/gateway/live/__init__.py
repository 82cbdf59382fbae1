"""What happens and how things are, for whoever looks: read once for all, and while there is anybody."""
