"""The buffers of a model: which of them all peers share as means, and which stay each peer's own."""
from __future__ import annotations

import fnmatch
import json
import warnings
from typing import TYPE_CHECKING, Sequence

from .tensors import Tensor, dtype_name

if TYPE_CHECKING:
    import torch

SHARED_TYPES = {'F32': 4, 'F64': 8, 'BF16': 4, 'F16': 4, 'I32': 8, 'I64': 8}  # bytes of a value on the wire
SHARED_BYTES = 900_000  # of all; the library allows about a megabyte
SHARED_VALUES = 65_536  # of one: batch normalisation has one a channel
SAMPLE = 4_096  # values by which a change of another buffer is noticed


class Buffers:
    """What rumor.h wants to know about the memory of `local`, and what to say of buffers that are not shared."""

    def __init__(self, local: Sequence[Tensor], own: Sequence[str]):
        patterns = [own] if isinstance(own, str) else list(own)
        for pattern in patterns:
            if pattern != '*' and not any(fnmatch.fnmatchcase(one.name, pattern) for one in local):
                raise ValueError(f'own_buffers: the model has no buffer {pattern!r}')
        self._local, self._shared = list(local), set()
        self._unshared: dict[str, tuple[Tensor, torch.Tensor]] = {}  # with a sample of its values
        left = SHARED_BYTES
        for one in local:
            if any(fnmatch.fnmatchcase(one.name, pattern) for pattern in patterns):
                continue
            size = 1 + one.seen.numel() * SHARED_TYPES.get(dtype_name(one.seen), SHARED_BYTES)
            if size <= left and one.seen.numel() <= SHARED_VALUES:
                self._shared.add(one.name)
                left -= size
            else:
                self._unshared[one.name] = one, self._sample(one)

    @staticmethod
    def _sample(one: Tensor) -> torch.Tensor:
        sample: torch.Tensor = one.owner.detach().reshape(-1)[:SAMPLE].clone()
        return sample

    def description(self) -> str:
        """The option `buffers`."""
        return json.dumps([{'name': one.name, 'dtype': dtype_name(one.seen), 'shape': list(one.seen.shape),
                            'shared': one.name in self._shared} for one in self._local])

    def warn_of_unshared(self) -> None:
        """Names a buffer that is too large or of a type that cannot be shared, and has changed: there the peers differ,
        although their weights are equal."""
        for name, (one, before) in self._unshared.items():
            if not self._sample(one).equal(before):
                warnings.warn(f'rumor: the buffer {name} is this peer\'s own: it is too large, or has no type that can '
                              f'be shared as a mean; own_buffers=[{name!r}] says that this is as it should be',
                              RuntimeWarning, stacklevel=3)
                return
