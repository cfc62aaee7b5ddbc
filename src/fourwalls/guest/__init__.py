"""The host half of the agent protocol. Whatever arrives here is hostile input."""
