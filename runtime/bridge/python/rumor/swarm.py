"""join() makes a PyTorch model a peer of a run."""
from __future__ import annotations

import os
import time
import warnings
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ._library import IO, NOT_FOUND, RumorError
from .peer import Peer

if TYPE_CHECKING:
    import torch


class _Tensor:
    """The memory of one tensor that the library uses: the tensor's own memory, or a copy.

    The library needs a contiguous tensor on one of `devices`, of float32 or bfloat16 unless it is local. A copy serves
    every other tensor."""

    def __init__(self, name: str, tensor: torch.Tensor, is_local: bool, devices: Sequence[str]):
        import torch
        self.name, self.tensor, self.is_local = name, tensor, is_local
        fits = tensor.device.type in devices and tensor.is_contiguous() and (
            is_local or tensor.dtype in (torch.float32, torch.bfloat16))
        self.gpu = tensor.device.index if fits and tensor.device.type == 'cuda' else None
        if fits:
            self.copy, self.seen = None, tensor.detach()
        else:
            dtype = tensor.dtype if is_local else torch.float32
            self.copy = self.seen = torch.empty(tensor.shape, dtype=dtype)
        self.address = self.seen.data_ptr()
        self.place = tensor.data_ptr()
        self.take()

    def take(self) -> None:
        """Copies the tensor for the library. Call this before the library reads the memory."""
        if self.tensor.data_ptr() != self.place:
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


class Swarm:
    """A model that trains together with other peers. join() makes it; call step() after each optimizer.step()."""

    def __init__(self, peer: Peer, model: torch.nn.Module, batch_size: int):
        self._peer, self._batch_size, self._left = peer, batch_size, False
        self._samples, self._samples_until = 0, 0.0
        self._parameters = [self._told(name, tensor, False) for name, tensor in model.named_parameters()
                            if tensor.requires_grad]
        if not self._parameters:
            raise ValueError('the model has no parameter that is trained')
        self._locals = [self._told(name, tensor, True) for name, tensor in model.named_buffers() if tensor.numel() > 0]
        self._gpus = {one.gpu for one in self._parameters + self._locals if one.gpu is not None}

    def _told(self, name: str, tensor: torch.Tensor, is_local: bool) -> _Tensor:
        one = _Tensor(name, tensor, is_local, ('cpu', 'cuda'))
        try:
            one.tell(self._peer)
        except RumorError as error:
            if one.gpu is None or error.code not in (NOT_FOUND, IO):
                raise
            one = _Tensor(name, tensor, is_local, ('cpu',))  # no plugin, or none for this device: by copies
            one.tell(self._peer)
        return one

    def _take(self) -> None:
        """Makes the program's changes to the tensors visible to the library."""
        import torch
        for one in self._parameters + self._locals:
            one.take()
        for gpu in self._gpus:
            torch.cuda.current_stream(gpu).synchronize()

    def _start(self, wait: float) -> None:
        self._take()
        if not self._peer.start(wait):
            warnings.warn('rumor: nobody has answered yet; training alone until somebody does', stacklevel=3)
        self._put(self._parameters + self._locals)

    @staticmethod
    def _put(tensors: list[_Tensor]) -> None:
        for one in tensors:
            one.put()

    def step(self, samples: int | None = None, loss: float | torch.Tensor | None = None) -> bool:
        """Call this after each optimizer.step(). Hands over its changes and applies those of other peers. Never waits.

        samples: rows of this step, instead of join()'s batch_size. loss: shown in the status.
        Returns False if the run has ended; then call leave()."""
        self._take()
        rows = self._batch_size if samples is None else samples
        if hasattr(loss, 'detach'):
            loss = loss.detach()
        goes_on = self._peer.step(rows, 0.0 if loss is None else float(loss))
        self._put(self._parameters)
        return goes_on

    def leave(self, wait: float = 10.0) -> None:
        """Ends the peer and writes the weights that all peers share into the model.

        Waits up to `wait` seconds until the others have finished too. Writes a checkpoint if join() was given a
        directory. Further calls do nothing."""
        if self._left:
            return
        self._left = True
        self._take()
        self._peer.leave(wait)
        self._put(self._parameters)

    def checkpoint(self) -> None:
        """Writes a checkpoint with the next update, in addition to the timed ones. Needs join()'s state."""
        self._peer.checkpoint()

    def status(self) -> dict[str, Any]:
        """Returns the object that /status serves: peers, samples, traffic, digest and more."""
        return self._peer.status()

    @property
    def samples(self) -> int:
        """Samples that all peers together have seen so far, at most a quarter of a second old.

        Use it for learning rates that fall with the progress of the run. It is cheap enough for every step."""
        now = time.monotonic()
        if now >= self._samples_until:
            self._samples, self._samples_until = self.status().get('samples', 0), now + 0.25
        return self._samples

    def __enter__(self) -> Swarm:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.leave()
        else:
            self._left = True
            self._peer.close()


def join(run: str, model: torch.nn.Module, *, seeds: str | Sequence[str] = (), listen: str | None = None,
         status: str | None = None, state: str | os.PathLike[str] | None = None, density: float | None = None,
         batch_size: int = 1, until_samples: int | None = None, wait: float = 30.0,
         options: Mapping[str, Any] | None = None) -> Swarm:
    """Makes `model` a peer of a run. All peers begin with equal weights: seed before making the model
    (torch.manual_seed), or load the same file. A peer that joins later takes the weights that the others trained.

    run            a name that all peers of the run share; or a run file, or a built-in run such as 'fashion-mlp';
                   this model must then match that run's model, shape by shape
    seeds          host:port of peers to join through; none: this is the first peer
    listen         host:port on which others reach this peer; a free port of 127.0.0.1 if not given
    status         host:port of a status page; no page if not given
    state          a directory for identity and checkpoints, from which a restarted script resumes
    density        share of all parameters that an update holds; 0.001 if not given
    batch_size     samples per step, unless step() is given another number
    until_samples  step() returns False when all peers together have seen this many samples
    wait           seconds to wait for the first answer
    options        any other options of rumor.h and keys of run files: {'network.up_mbit': 10}

    Parameters that need no gradient are left unchanged. Buffers, such as running statistics of BatchNorm, belong to
    this peer alone; checkpoints contain them. Checkpoints do not contain the optimizer's state: save it as usual. The
    library accesses tensors on a CUDA device directly if it has its plugin. It copies tensors on other devices, or of
    other types than float32 and bfloat16, twice per step.

    Raises MismatchError if the others have another model or other initial weights, RumorError for other failures."""
    peer = Peer(os.fspath(run))
    for seed in [seeds] if isinstance(seeds, str) else seeds:
        peer.option('seed', seed)
    told = {'listen': listen, 'status': status, 'state': None if state is None else os.fspath(state),
            'compress.density': density, 'until_samples': until_samples, **(options or {})}
    for name, value in told.items():
        if value is not None:
            peer.option(name, value)
    swarm = Swarm(peer, model, batch_size)
    swarm._start(wait)
    return swarm
