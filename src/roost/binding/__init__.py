"""Which server holds a user: every user has one home, and every request finds it."""
