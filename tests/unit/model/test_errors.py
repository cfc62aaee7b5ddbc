"""The error tree: one code a class, and the docstring draws all of it."""

from __future__ import annotations

import fourwalls.model.errors as errors


def test_every_class_has_a_code_of_its_own() -> None:
    codes = [cls.code for cls in errors.all_errors()]
    assert len(codes) == len(set(codes))


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = {}
    for line in (errors.__doc__ or "").splitlines():
        words = line.replace("│", " ").replace("├──", " ").replace("└──", " ").split()
        if len(words) == 2 and words[0].endswith("Error"):
            drawn[words[0]] = words[1]
    assert drawn == {cls.__name__: cls.code for cls in errors.all_errors()}


def test_the_remedy_is_part_of_the_text() -> None:
    error = errors.TemplateError("broken", remedy="build it again")
    assert str(error) == "broken\n  remedy: build it again"
