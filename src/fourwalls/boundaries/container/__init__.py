"""`container`: kernel namespaces, cgroups and seccomp, by crun."""
