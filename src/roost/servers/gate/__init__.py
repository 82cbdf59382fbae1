"""The gate: keeps players' connections and takes each message to the server that holds the user."""
