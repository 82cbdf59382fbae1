"""One gateway as several processes on one port: their supervisor, and what they tell each other."""
