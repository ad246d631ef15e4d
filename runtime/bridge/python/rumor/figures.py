"""Figures of a status for programs: flat numbers, and who trains."""
from __future__ import annotations

from typing import Any, Mapping


def flat(status: Mapping[str, Any], prefix: str = '') -> dict[str, float]:
    """The numbers in it, by names such as 'traffic.sent_bytes'. Lists and texts are left out."""
    numbers: dict[str, float] = {}
    for name, value in status.items():
        if isinstance(value, Mapping):
            numbers.update(flat(value, f'{prefix}{name}.'))
        elif isinstance(value, (bool, int, float)):
            numbers[prefix + name] = float(value)
    return numbers


def trainers(status: Mapping[str, Any]) -> list[str]:
    """Names of the peers that train now, in the same order on all of them."""
    others = status['compression']['staleness']['peers']
    return sorted([status['node_id'], *(other['node_id'] for other in others)])
