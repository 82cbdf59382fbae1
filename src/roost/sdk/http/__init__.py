"""Through a gateway, for machines that may not or need not reach the store."""
