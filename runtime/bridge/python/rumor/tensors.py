"""The tensors of a model, as librumor uses them: memory of its own kind, by the names that all peers share."""
from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Iterator, Sequence

from .peer import Peer

if TYPE_CHECKING:
    import torch

FROZEN_SAMPLE = 4096  # values of each frozen parameter that frozen_hash() reads


def plain_name(name: str) -> str:
    """The name without what torch.compile and DistributedDataParallel put before it, so that such a peer can train
    together with one that uses neither."""
    return '.'.join(part for part in name.split('.') if part not in ('_orig_mod', 'module'))


def named_parameters(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters that have values, with their plain names; or with all of their names, if two are the same then."""
    return _plainly_named(model.named_parameters())


def named_buffers(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The same for buffers."""
    return _plainly_named(model.named_buffers())


def _plainly_named(tensors: Iterator[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
    named = [(name, tensor) for name, tensor in tensors if tensor.numel() > 0]
    plain = [plain_name(name) for name, _ in named]
    unique = len(set(plain)) == len(plain)
    return ((short if unique else name, tensor) for short, (name, tensor) in zip(plain, named))


def frozen_hash(model: torch.nn.Module) -> str:
    """A hash of names, shapes and a sample of the values of all parameters that need no gradient; '' if there are none.

    Values are rounded to bfloat16 first: a base loaded in float32 and one loaded in bfloat16 are the same base."""
    import torch
    digest = hashlib.sha256()
    found = False
    for name, tensor in named_parameters(model):
        if tensor.requires_grad:
            continue
        found = True
        flat = tensor.detach().reshape(-1)
        some = flat[::max(1, flat.numel() // FROZEN_SAMPLE)]
        if some.is_floating_point():
            some = some.to(torch.bfloat16)
        digest.update(f'{name} {tuple(tensor.shape)} '.encode())
        digest.update(bytes(some.cpu().contiguous().view(torch.uint8).tolist()))  # numpy may not be there
    return digest.hexdigest() if found else ''


def dtype_name(tensor: torch.Tensor) -> str:
    """The type as safetensors files name it, such as F32 or BF16; of an unknown one PyTorch's name."""
    name = str(tensor.dtype).removeprefix('torch.')
    if name in ('bool', 'bfloat16'):
        return {'bool': 'BOOL', 'bfloat16': 'BF16'}[name]
    kind = next((one for one in ('uint', 'int', 'float') if name.startswith(one)), '')
    return {'uint': 'U', 'int': 'I', 'float': 'F'}[kind] + name[len(kind):] if kind else name


class Tensor:
    """The memory of one tensor that the library uses: the tensor's own memory, or a copy.

    The library needs a contiguous tensor on one of `devices`, of float32 or bfloat16 unless it is local. A copy serves
    every other tensor. A complex tensor is seen as pairs of real numbers."""

    def __init__(self, name: str, tensor: torch.Tensor, is_local: bool, devices: Sequence[str]):
        import torch
        if type(tensor).__name__ == 'DTensor' or type(tensor.data).__name__ == 'DTensor':
            raise TypeError(f'{name} is sharded over processes (FSDP2, tensor parallelism), which rumor.join() does '
                            'not support: give each peer a whole model, or use DistributedDataParallel within a peer')
        if tensor.device.type == 'meta':
            raise TypeError(f'{name} has no values yet (it is on the meta device): load weights before rumor.join()')
        self.name, self.is_local, self.owner = name, is_local, tensor
        self.tensor = torch.view_as_real(tensor.detach()) if tensor.is_complex() and not is_local else tensor
        fits = tensor.device.type in devices and self.tensor.is_contiguous() and (
            is_local or self.tensor.dtype in (torch.float32, torch.bfloat16))
        self.gpu = tensor.device.index if fits and tensor.device.type == 'cuda' else None
        if fits:
            self.copy, self.seen = None, self.tensor.detach()
        else:
            dtype = tensor.dtype if is_local else torch.float32
            self.copy = self.seen = torch.empty(self.tensor.shape, dtype=dtype)
        self.address = self.seen.data_ptr()
        self.place = tensor.data_ptr()
        self.take()

    def take(self) -> None:
        """Copies the tensor for the library. Call this before the library reads the memory."""
        if self.owner.data_ptr() != self.place:
            raise RuntimeError(f'{self.name} has moved: give the model its device and type before rumor.join()')
        if self.copy is not None:
            self.copy.copy_(self.tensor.detach())

    def tell(self, peer: Peer) -> None:
        """Gives the library the address of the memory."""
        if self.is_local:
            peer.local(self.name, self.seen.numel() * self.seen.element_size(), self.address, self.gpu)
        else:
            is_bf16 = str(self.seen.dtype) == 'torch.bfloat16'
            peer.parameter(self.name, tuple(self.seen.shape), self.address, is_bf16, self.gpu)

    def put(self) -> None:
        """Copies the memory back to the tensor. Call this after the library has written."""
        if self.copy is not None:
            self.tensor.detach().copy_(self.copy)

    def follow(self, tensor: torch.Tensor) -> bool:
        """The model has another tensor of this name now: the library's memory becomes a copy of that one. Returns False
        if it cannot, for another shape or type."""
        if tensor.shape != self.tensor.shape or tensor.dtype != self.tensor.dtype:
            return False
        self.copy = self.seen
        self.owner = self.tensor = tensor
        self.place = tensor.data_ptr()
        return True
