"""Twins: copies of the weights that an optimizer keeps and writes over the parameters, so both must change together.

Examples are the float masters of half-precision weights (apex, DeepSpeed), the slow weights of Lookahead (Zhang et al.,
2019) and the z of Schedule-Free (Defazio et al., 2024). They are found by their values, not by their names."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

NEAR = 0.1  # of the parameters' squares: moments and gradients differ from weights by all of them


class Twins:
    """Gives the twins in `optimizer` the changes of other peers."""

    def __init__(self, optimizer: torch.optim.Optimizer | None, parameters: list[torch.Tensor]):
        self._optimizer, self._parameters = optimizer, parameters
        self._found: list[tuple[torch.Tensor, torch.Tensor]] = []  # parameter, twin
        self._before: dict[int, torch.Tensor] = {}
        self._looked_at = -1

    def before(self) -> None:
        """Call this before the parameters change."""
        if self._optimizer is None:
            return
        size = sum(len(state) for state in self._optimizer.state.values() if isinstance(state, dict))
        if size != self._looked_at:  # the optimizer makes its state in its first steps
            self._looked_at = size
            self._found = self._in_state() + self._in_groups()
        self._before = {id(tensor): tensor.detach().clone() for tensor, _ in self._found}

    def after(self) -> None:
        """Call this when they have changed."""
        for tensor, twin in self._found:
            twin.add_((tensor.detach() - self._before[id(tensor)]).to(twin.dtype))
        self._before = {}

    def _in_state(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """State of one name is a twin if, over all parameters, it is near to them: a moment may be near to some."""
        by_key: dict[Any, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        for tensor in self._parameters:
            state = self._optimizer.state.get(tensor, {})
            for key, value in state.items() if isinstance(state, dict) else ():
                if hasattr(value, 'shape') and value.shape == tensor.shape and value.is_floating_point():
                    by_key.setdefault(key, []).append((tensor, value))
        return [pair for pairs in by_key.values() if self._near(pairs) for pair in pairs]

    def _in_groups(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Parameters of the optimizer that are none of the model's, in the order of those that they resemble."""
        own = {id(tensor) for tensor in self._parameters}
        masters = [one for group in self._optimizer.param_groups for one in group['params'] if id(one) not in own]
        pairs = []
        left = list(self._parameters)
        for master in masters:
            match = next((tensor for tensor in left if tensor.shape == master.shape
                          and self._near([(tensor, master)])), None)
            if match is not None:
                left = [tensor for tensor in left if tensor is not match]
                pairs.append((match, master.detach()))
        return pairs

    @staticmethod
    def _near(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> bool:
        apart = sum((twin.detach().double() - tensor.detach().double()).square().sum().item() for tensor, twin in pairs)
        return apart <= NEAR * sum(tensor.detach().double().square().sum().item() for tensor, _ in pairs)
