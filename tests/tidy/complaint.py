"""What a rule says about one place in the tree."""

from typing import NamedTuple


class Complaint(NamedTuple):
    path: str
    line: int
    rule: str
    text: str
