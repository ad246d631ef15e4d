"""Watch: notices a model that is no longer the one that joined, since the run would go on with the old tensors."""
from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

from .tensors import Tensor

if TYPE_CHECKING:
    import torch

NAMES_EVERY = 0.5  # seconds between two looks at all names; the parameters themselves are looked at every step


class Watch:
    """Looks at where each tensor of the model stands. look() is cheap enough for every step."""

    def __init__(self, model: torch.nn.Module, buffers: list[Tensor]):
        self._model = model
        self._places = [(module._parameters, key, tensor, prefix + key)  # pylint: disable=protected-access
                        for prefix, module in self._modules() for key, tensor in module._parameters.items()]
        self._frozen = [(tensor, name) for *_, tensor, name in self._places
                        if tensor is not None and not tensor.requires_grad]
        self._all_at_join = self._all()
        by_tensor = {id(one.owner): one for one in buffers}
        self._buffers = [(module._buffers, key, by_tensor[id(tensor)])  # pylint: disable=protected-access
                         for _, module in self._modules() for key, tensor in module._buffers.items()
                         if tensor is not None and id(tensor) in by_tensor]
        self._next_names = time.monotonic() + NAMES_EVERY

    def _modules(self) -> list[tuple[str, torch.nn.Module]]:
        return [(name + '.' if name else '', module) for name, module in self._model.named_modules()]

    def _all(self) -> dict[str, torch.nn.Parameter]:
        return dict(self._model.named_parameters())

    def look(self, at_names: bool = False) -> None:
        """Raises RuntimeError if a parameter was replaced, added, removed or unfrozen. Follows buffers that were.

        at_names: looks at all names now, however recent the last look at them is."""
        for place, key, tensor, name in self._places:
            if place.get(key) is not tensor:
                self._fail(f'{name} is another tensor')
        for tensor, name in self._frozen:
            if tensor.requires_grad:
                self._fail(f'{name} needs a gradient now')
        for buffers, key, one in self._buffers:
            buffer = buffers.get(key)
            if buffer is not None and buffer is not one.owner and not one.follow(buffer):
                warnings.warn(f'rumor: {one.name} has another shape or type than at rumor.join(); checkpoints keep '
                              'what it was', stacklevel=4)
                self._buffers = [other for other in self._buffers if other[2] is not one]
        if at_names or time.monotonic() >= self._next_names:  # also finds modules that were replaced
            self._next_names = time.monotonic() + NAMES_EVERY
            now, before = self._all(), self._all_at_join
            for name in now.keys() | before.keys():
                if now.get(name) is not before.get(name):
                    self._fail(f'{name} was added, removed or replaced')

    @staticmethod
    def _fail(what: str) -> None:
        raise RuntimeError(f'the model is not the one that joined: {what}, so the run would go on without it. Change '
                           'the model before rumor.join(); to load weights later, copy them into the tensors that are '
                           'there (load_state_dict without assign=True)')
