"""The only contact with the kernel: processes, cgroups, mounts, locks, and the undo stack."""
