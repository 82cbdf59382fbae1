"""The feed to other systems: every event at least once, to a webhook, NATS or Kafka."""
