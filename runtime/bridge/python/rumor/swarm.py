"""join() makes a PyTorch model a peer of a run."""
from __future__ import annotations

import contextlib
import os
import time
import warnings
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

from ._library import IO, NOT_FOUND, RumorError
from .peer import Peer
from .ranks import Ranks
from .tensors import Tensor, frozen_hash, named_parameters
from .twins import Twins
from .watch import Watch

if TYPE_CHECKING:
    import torch


class Swarm:
    """A model that trains together with other peers. join() makes it; call step() after each optimizer.step()."""

    def __init__(self, peer: Peer | None, model: torch.nn.Module, batch_size: int, ranks: Ranks,
                 optimizer: torch.optim.Optimizer | None = None):
        self._peer, self._batch_size, self._ranks, self._left = peer, batch_size, ranks, False
        self._samples, self._samples_until = 0, 0.0
        trained = [(name, tensor) for name, tensor in named_parameters(model) if tensor.requires_grad]
        if not trained:
            raise ValueError('the model has no parameter that is trained')
        self._trained = [tensor for _, tensor in trained]
        self._parameters = [self._told(name, tensor, False) for name, tensor in trained]
        self._locals = [self._told(name, tensor, True) for name, tensor in model.named_buffers() if tensor.numel() > 0]
        self._gpus = {one.gpu for one in self._parameters + self._locals if one.gpu is not None}
        self._twins = Twins(optimizer, self._trained)
        self._watch = Watch(model, self._locals)
        self._warn_of_buffers()

    def _told(self, name: str, tensor: torch.Tensor, is_local: bool) -> Tensor:
        one = Tensor(name, tensor, is_local, ('cpu', 'cuda'))
        if self._peer is None:
            return one
        try:
            one.tell(self._peer)
        except RumorError as error:
            if one.gpu is None or error.code not in (NOT_FOUND, IO):
                raise
            one = Tensor(name, tensor, is_local, ('cpu',))  # no plugin, or none for this device: by copies
            one.tell(self._peer)
        return one

    def _warn_of_buffers(self) -> None:
        own = [one.name for one in self._locals if one.tensor.is_floating_point() and 'running_' in one.name]
        if own and self._ranks.is_peer:
            warnings.warn(f'rumor: {own[0]} and other running statistics are each peer\'s own, so models differ in '
                          'eval() although all weights are equal; with unlike data use GroupNorm or LayerNorm',
                          stacklevel=4)

    def _take(self) -> None:
        """Makes the program's changes to the tensors visible to the library."""
        import torch
        self._watch.look()
        for one in self._parameters + self._locals:
            one.take()
        for gpu in self._gpus:
            torch.cuda.current_stream(gpu).synchronize()

    def _start(self, wait: float) -> None:
        self._take()
        answered = self._ranks.all_do(lambda: self._peer.start(wait))
        if not answered and self._ranks.is_peer:
            warnings.warn('rumor: nobody has answered yet; training alone until somebody does', stacklevel=3)
        self._put(self._parameters + self._locals)
        self._ranks.share([one.owner for one in self._locals])

    def _put(self, tensors: list[Tensor]) -> None:
        if self._peer is not None:
            for one in tensors:
                one.put()
        self._ranks.share(self._trained)

    def _warn(self) -> None:
        """Passes the library's warnings on. They are about the line that called step()."""
        text = self._peer.warning() if self._peer is not None else None
        while text is not None:
            warnings.warn(f'rumor: {text}', RuntimeWarning, stacklevel=3)
            text = self._peer.warning()

    def step(self, samples: int | None = None, loss: float | torch.Tensor | None = None) -> bool:
        """Call this after each optimizer.step(). Hands over its changes and applies those of other peers. Never waits.

        samples: rows of this step, instead of join()'s batch_size. loss: shown in the status.
        Returns False if the run has ended; then call leave().
        Raises RuntimeError if the model is not the one that joined. Warns, once each, of what would make a model wrong:
        a weight that nears the end of the grid, an optimizer that undoes what others have changed."""
        if self._left:
            return False
        rows = self._batch_size if samples is None else samples
        if rows < 0 or rows >= 2 ** 24:
            raise ValueError(f'step(samples={samples}): the rows of one step, from 0 to {2 ** 24 - 1}')
        if hasattr(loss, 'detach'):
            loss = loss.detach()
        self._take()
        self._twins.before()
        goes_on = self._ranks.all_do(
            lambda: self._peer.step(rows * self._ranks.count, 0.0 if loss is None else float(loss)))
        self._put(self._parameters)
        self._twins.after()
        self._warn()
        return goes_on

    @contextlib.contextmanager
    def shared_weights(self) -> Iterator[None]:
        """Within this block the model holds the weights that all peers share, without what this peer has learned and
        not sent yet: `with swarm.shared_weights(): evaluate(model)`. Do not train in it: changes are dropped."""
        self._take()
        self._ranks.all_do(lambda: self._peer.show_shared(True))
        self._put(self._parameters)
        try:
            yield
        finally:
            self._ranks.all_do(lambda: self._peer.show_shared(False))
            self._put(self._parameters)

    def leave(self, wait: float = 10.0, keep_model: bool = False) -> None:
        """Ends the peer and writes the weights that all peers share into the model. What this peer has learned and not
        sent yet goes to the others before (a few bits a parameter), so the model holds it too.

        Waits up to `wait` seconds until the others have finished too. Writes a checkpoint if join() was given a
        directory. keep_model: the model stays as it is, and the run does not get what was changed in it since the last
        step(): for a model that had its best weights loaded again. Further calls do nothing."""
        if self._left:
            return
        self._left = True
        kept = [tensor.detach().clone() for tensor in self._trained] if keep_model else []
        try:
            self._watch.look(at_names=True)
            self._take()
        except RuntimeError:  # the model is not the one that joined
            self.close()
            raise
        self._ranks.all_do(lambda: self._end(wait, keep_model))
        self._put(self._parameters)
        for tensor, value in zip(self._trained, kept):
            tensor.detach().copy_(value)

    def _end(self, wait: float, keep_model: bool) -> None:
        if keep_model:
            self._peer.take_back()
        self._peer.leave(wait)

    def close(self) -> None:
        """Ends the peer at once, without a last exchange. The model stays as it is. leave() does nothing then."""
        self._left = True
        if self._peer is not None:
            self._peer.close()

    def checkpoint(self) -> None:
        """Writes a checkpoint with the next update, in addition to the timed ones. Needs join()'s state."""
        if self._peer is not None:
            self._peer.checkpoint()

    def status(self) -> dict[str, Any]:
        """Returns the object that /status serves: peers, samples, traffic, digest and more. Where a peer has several
        processes, all of them must call it."""
        return self._ranks.all_do(lambda: self._peer.status())

    @property
    def samples(self) -> int:
        """Samples that all peers together have seen so far, at most a quarter of a second old.

        Use it for learning rates that fall with the progress of the run. It is cheap enough for every step."""
        return self._ranks.all_do(self._recent_samples)

    def _recent_samples(self) -> int:
        now = time.monotonic()
        if now >= self._samples_until:
            self._samples, self._samples_until = self._peer.status().get('samples', 0), now + 0.25
        return self._samples

    def __enter__(self) -> Swarm:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.leave()
        else:
            self.close()


def join(run: str, model: torch.nn.Module, *, seeds: str | Sequence[str] = (), listen: str | None = None,
         status: str | None = None, state: str | os.PathLike[str] | None = None, density: float | None = None,
         batch_size: int = 1, until_samples: int | None = None, wait: float = 30.0,
         optimizer: torch.optim.Optimizer | None = None, weights: str = 'own',
         options: Mapping[str, Any] | None = None) -> Swarm:
    """Makes `model` a peer of a run. All peers begin with equal weights: seed before making the model
    (torch.manual_seed), or load the same file; or use weights='swarm'. A peer that joins later takes the weights that
    the others trained.

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
    optimizer      only needed for one that keeps copies of the weights and writes them over the parameters, such as
                   float masters, Lookahead or Schedule-Free: the copies get the changes of others, too
    weights        'own': the model begins the run with its weights, which must be equal on all peers. 'swarm': it takes
                   the run's weights, from the checkpoint in `state` or from the seeds, whatever its own are: for a
                   model that was loaded from a file, or trained before. The first peer of a run has neither, and
                   begins with its own. join() then waits as long as the weights take to come
    options        any other options of rumor.h and keys of run files: {'network.up_mbit': 10}

    Parameters that need no gradient are left unchanged; a hash of them is part of the run's identity, so peers with
    unlike ones (LoRA over another base) are refused. options={'frozen': 'any text'} takes the place of the hash.
    Buffers, such as running statistics of BatchNorm, belong to this peer alone; checkpoints contain them. Checkpoints
    do not contain the optimizer's state: save it as usual. The library accesses tensors on a CUDA device directly if it
    has its plugin. It copies tensors on other devices, or of other types than float32 and bfloat16, twice per step.

    A peer with several processes (DistributedDataParallel) calls join() and everything else in all of them, with the
    same arguments and the wrapped model. The first process is the peer; batch_size counts the rows of one process.

    Raises MismatchError if the others have another model or other initial weights, RumorError for other failures."""
    ranks = Ranks(model)
    told = {'listen': listen, 'status': status, 'state': None if state is None else os.fspath(state),
            'compress.density': density, 'until_samples': until_samples, 'weights': weights, **(options or {})}
    peers: list[Peer] = []  # one, or none in a process that is not the first
    ranks.all_do(lambda: peers.append(_peer(run, model, told, seeds)))
    swarm = Swarm(peers[0] if peers else None, model, batch_size, ranks, optimizer)
    swarm._start(wait)
    return swarm


def _peer(run: str, model: torch.nn.Module, told: dict[str, Any], seeds: str | Sequence[str]) -> Peer:
    peer = Peer(os.fspath(run))
    for seed in [seeds] if isinstance(seeds, str) else seeds:
        peer.option('seed', seed)
    if 'frozen' not in told:
        told['frozen'] = frozen_hash(model) or None
    for name, value in told.items():
        if value is not None:
            peer.option(name, value)
    return peer
