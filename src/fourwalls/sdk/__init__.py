"""The Python SDK. The async half is written, the sync half is a thin layer over it."""
