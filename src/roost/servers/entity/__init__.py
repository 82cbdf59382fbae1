"""The entity server: it holds users and answers for them, each on one server at a time."""
