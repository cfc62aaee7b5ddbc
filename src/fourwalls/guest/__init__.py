"""The host half of the agent protocol: one byte stream to one sandbox, everything in it hostile."""
