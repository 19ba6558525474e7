"""The documentation that is made from the code is as the code is."""

from __future__ import annotations

import runpy

from fastprof import plan
from tests.support.paths import REPO


def test_options_are_listed_as_they_are_declared() -> None:
    made = runpy.run_path(str(REPO / "docs" / "make_options.py"))["text"]()
    assert (REPO / "docs" / "options.md").read_text() == made, "make docs"


def test_every_option_has_a_flag_of_its_own_and_an_owner() -> None:
    known = plan.known_options()
    flags = [flag for option in known for flag in (option.flag, option.short) if flag]
    assert len(set(flags)) == len(flags)
    assert [option for option in known if not plan.owners(option) or not option.help or not option.group] == []
