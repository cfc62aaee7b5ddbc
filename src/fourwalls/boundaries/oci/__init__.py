"""What the OCI runtimes share: the config is rendered once for crun and runsc."""
