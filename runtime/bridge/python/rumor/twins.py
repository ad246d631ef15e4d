"""Twins: copies of the weights that an optimizer keeps and writes over the parameters, so both must change together.

Examples are the float masters of half-precision weights (apex, DeepSpeed), the slow weights of Lookahead (Zhang et al.,
2019) and the z of Schedule-Free (Defazio et al., 2024). They are found by their values, not by their names.

The optimizers that train the parameters are found among the objects of this process, unless join() was given one. A
copy that never changes is only read, such as the start from which Prodigy (Mishchenko and Defazio, 2024) measures
distances, and is left alone. MADGRAD (Defazio and Jelassi, 2022) is the exception: its weights are sums from there."""
from __future__ import annotations

import gc
import itertools
import time
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

NEAR_SAMPLE = 4096  # values of each tensor that are compared
NEAR = 0.1  # of the parameters' squares: moments and gradients differ from weights by all of them
WATCHED = 64  # values of each tensor
ORIGINS = ('x0',)  # never change, and are written over the parameters all the same: MADGRAD's name for them
PAUSE = 1000  # times as long as a search for optimizers took: until the next one


class Twin(NamedTuple):
    """A copy of this parameter, in a place where the optimizer may put a new tensor at any time."""
    parameter: torch.Tensor
    holder: Any
    key: Any

    def tensor(self) -> torch.Tensor | None:
        held: Any = self.holder.get(self.key) if isinstance(self.holder, dict) else self.holder[self.key]
        return held.detach() if _is_copy(held, self.parameter) else None

    def seen(self) -> torch.Tensor:
        """Some values that show whether the optimizer has changed it."""
        return _some(self.tensor(), WATCHED).clone()


class Copies:
    """Twins of one kind, such as all slow weights. They take part once the optimizer has changed one."""

    def __init__(self, twins: list[Twin], take_part: bool):
        self._twins, self._take_part = twins, take_part
        self._first_seen = itertools.cycle([] if take_part else [(twin, twin.seen()) for twin in twins])

    def taking_part(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Parameters, and their copies as they are now. One copy is looked at for a change each time, in turns."""
        if not self._take_part:
            twin, first = next(self._first_seen)
            self._take_part = not twin.seen().equal(first)
        now = [(twin.parameter, twin.tensor()) for twin in self._twins if self._take_part]
        return [(parameter, copy) for parameter, copy in now if copy is not None]

    def are_near(self) -> bool:
        """Over all parameters: a moment may be near to some."""
        apart = size = 0.0
        for twin in self._twins:
            own, copy = (_some(one, NEAR_SAMPLE).double() for one in (twin.parameter, twin.tensor()))
            weight = twin.parameter.numel() / max(1, own.numel())
            apart += weight * (copy - own).square().sum().item()
            size += weight * own.square().sum().item()
        return apart < NEAR * size


def _some(tensor: torch.Tensor | None, count: int) -> torch.Tensor:
    """Values all over the tensor; none of a copy that is gone."""
    import torch
    return torch.empty(0) if tensor is None else tensor.detach().reshape(-1)[::tensor.numel() // count + 1].cpu()


class Twins:
    """Gives the twins in `optimizer`, or in all optimizers of the parameters, the changes of other peers."""

    def __init__(self, optimizer: torch.optim.Optimizer | None, parameters: list[torch.Tensor]):
        self._told, self._parameters = optimizer, parameters
        self._optimizers: list[weakref.ref[torch.optim.Optimizer]] = []
        self._next_search = 0.0
        self._copies: list[Copies] = []
        self._looked_at: list[tuple[int, int]] = []
        self._taking_part: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._before: dict[int, torch.Tensor] = {}

    def before(self) -> None:
        """Call this before the parameters change."""
        optimizers = [self._told] if self._told is not None else self._searched()
        looks = [(id(one.state), sum(len(state) for state in one.state.values() if isinstance(state, dict)))
                 for one in optimizers]
        if looks != self._looked_at:  # an optimizer makes its state in its first steps
            self._looked_at = looks
            self._copies = [copies for one in optimizers for copies in self._in_state(one)]
            if self._told is not None:  # else tensors of equal values may be another model's
                self._copies.append(self._in_groups(self._told))
        found = [pair for copies in self._copies for pair in copies.taking_part()]
        self._taking_part = list({copy.data_ptr(): (tensor, copy) for tensor, copy in found}.values())  # each once
        self._before = {id(tensor): tensor.detach().clone() for tensor, _ in self._taking_part}

    def after(self) -> None:
        """Call this when they have changed."""
        for tensor, copy in self._taking_part:
            copy.add_((tensor.detach() - self._before[id(tensor)]).to(copy.device, copy.dtype))
        self._before = {}

    def search_soon(self) -> None:
        """The next step looks for optimizers: the program may make them now."""
        self._next_search = 0.0

    def _searched(self) -> list[torch.optim.Optimizer]:
        """All optimizers with one of the parameters. A search looks at every object, so it is made now and then."""
        import torch
        began = time.monotonic()
        if began >= self._next_search:
            own = {id(tensor) for tensor in self._parameters}
            self._optimizers = [
                weakref.ref(one) for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer)
                and any(id(tensor) in own for group in getattr(one, 'param_groups', ()) for tensor in group['params'])]
            now = time.monotonic()
            self._next_search = now + PAUSE * (now - began)
        return [one for one in (ref() for ref in self._optimizers) if one is not None]

    def _in_state(self, optimizer: torch.optim.Optimizer) -> list[Copies]:
        """One for each name in the state whose tensors are twins."""
        by_key: dict[Any, list[Twin]] = {}
        for tensor in self._parameters:
            state = optimizer.state.get(tensor, {})
            for key in state if isinstance(state, dict) else ():
                if _is_copy(state[key], tensor):
                    by_key.setdefault(key, []).append(Twin(tensor, state, key))
        every = [(key in ORIGINS, Copies(twins, key in ORIGINS)) for key, twins in by_key.items()]
        return [copies for is_origin, copies in every if is_origin or copies.are_near()]

    def _in_groups(self, optimizer: torch.optim.Optimizer) -> Copies:
        """Parameters of the optimizer that are none of the model's, in the order of those that they resemble."""
        own = {id(tensor) for tensor in self._parameters}
        left = list(self._parameters)
        found: list[Twin] = []
        for group in optimizer.param_groups:
            for index, master in enumerate(group['params']):
                near = (Twin(tensor, group['params'], index) for tensor in left if _is_copy(master, tensor))
                match = next((twin for twin in near if id(master) not in own and Copies([twin], True).are_near()), None)
                if match is not None:
                    left = [tensor for tensor in left if tensor is not match.parameter]
                    found.append(match)
        return Copies(found, True)


def _is_copy(value: Any, tensor: torch.Tensor) -> bool:
    return hasattr(value, 'data_ptr') and value.shape == tensor.shape and value.is_floating_point() \
        and value.data_ptr() != tensor.data_ptr()
