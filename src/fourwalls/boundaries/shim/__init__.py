"""The shim: its launch specification as values, and starting it."""
