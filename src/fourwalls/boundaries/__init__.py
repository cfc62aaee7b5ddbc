"""The walls. One folder a boundary; `registry` names them, `base` is what they all are."""
