"""`gvisor`: a user-space kernel, by runsc."""
