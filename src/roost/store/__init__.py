"""The only user of Redis: how commands travel, where keys are born, how scripts are called."""
