"""One host's sandboxes: create, adopt, end, reap."""
