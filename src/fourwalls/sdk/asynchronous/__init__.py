"""The async SDK: one class a file, all of it written here."""
