"""Swarms of this process that have not left: a notebook's cell that was stopped and runs again, or a loop that ended in
an exception, joins anew while its former peer still has the state directory, the address and the model."""
from __future__ import annotations

import os
import warnings
import weakref
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

    from .swarm import Swarm


class Place(NamedTuple):
    """What one peer of a process can have only."""
    run: str
    state: str | None
    listen: str | None

    def is_taken_by(self, other: Place) -> bool:
        """Whether `other` is this one, begun again. Peers of two runs may not share a place either, and are refused."""
        same_state = self.state is not None and other.state is not None and (
            os.path.abspath(self.state) == os.path.abspath(other.state))
        same_listen = self.listen is not None and self.listen == other.listen and not self.listen.endswith(':0')
        return self.run == other.run and (same_state or same_listen)


_running: list[tuple[Place, weakref.ref[Swarm]]] = []


def note(swarm: Swarm, place: Place) -> None:
    """Remembers a swarm, as long as it lives."""
    _running[:] = [one for one in _running if one[1]() is not None]
    _running.append((place, weakref.ref(swarm)))


def end_former(place: Place, model: torch.nn.Module) -> None:
    """Ends at once each peer of this process that has the same place, or trains this model."""
    parameters = {id(tensor) for _, tensor in model.named_parameters()}
    for former, one in list(_running):
        swarm = one()
        if swarm is None or swarm.has_left() or not (former.is_taken_by(place) or swarm.trains_any_of(parameters)):
            continue
        warnings.warn(f'rumor: the former peer of {former.run!r} in this process has not left; it ends now',
                      RuntimeWarning, stacklevel=3)
        swarm.close()
