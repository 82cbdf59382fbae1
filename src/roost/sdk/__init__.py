"""What a game server imports: one client for all of Roost, by HTTP, straight to the store, or in process."""
