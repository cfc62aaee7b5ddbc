"""Names are checked, and go to file names and back without loss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourwalls.images.names import TemplateName, digest_hex
from fourwalls.model.errors import InvalidArgumentError

_PARTS = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True)


@given(_PARTS, _PARTS)
def test_every_name_survives_its_file_name(name: str, tag: str) -> None:
    parsed = TemplateName.parse(f"{name}:{tag}")
    assert TemplateName.from_file_name(parsed.file_name) == parsed
    assert TemplateName.parse(str(parsed)) == parsed
    assert "/" not in parsed.file_name
    assert not parsed.file_name.startswith(".")


@given(st.text())
def test_whatever_is_accepted_is_a_plain_file_name(text: str) -> None:
    try:
        name = TemplateName.parse(text)
    except InvalidArgumentError:
        return
    assert name.file_name not in (".", "..")
    assert name.file_name.isascii()
    assert len(name.file_name) < 255


def test_the_default_tag_is_not_shown() -> None:
    assert str(TemplateName.parse("base:latest")) == "base"
    assert TemplateName.parse("base") == TemplateName.parse("base:latest")


@pytest.mark.parametrize(
    "text", ["", "A", "a b", "../x", "a/b", "a:", ":a", "a:b:c", "a@b", "-a", "a\n", "x" * 64, ".a"]
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="not allowed"):
        TemplateName.parse(text)


def test_digests_are_recognised() -> None:
    assert digest_hex("blake2b:" + "a" * 64) == "a" * 64
    assert digest_hex("a" * 64) == "a" * 64
    assert digest_hex("a" * 63) is None
    assert digest_hex("sha256:" + "a" * 64) is None
