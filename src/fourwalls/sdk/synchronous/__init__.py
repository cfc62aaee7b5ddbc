"""The sync SDK: the async one, run by a thread in the background. Nothing is decided here."""
