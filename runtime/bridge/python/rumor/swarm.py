"""Swarm: a PyTorch model that is a peer of a run."""
from __future__ import annotations

import concurrent.futures
import contextlib
import time
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence

from ._library import IO, NOT_FOUND, RumorError
from .buffers import Buffers
from .figures import flat, trainers
from .peer import Peer
from .ranks import Ranks
from .tensors import Tensor, named_buffers, named_parameters
from .twins import Twins
from .watch import Watch

if TYPE_CHECKING:
    import torch


class Swarm:
    """A model that trains together with other peers. join() makes it; call step() after each optimizer.step()."""

    def __init__(self, peer: Peer | None, model: torch.nn.Module, batch_size: int, ranks: Ranks,
                 optimizer: torch.optim.Optimizer | None = None, callbacks: Sequence[Any] = (),
                 own_buffers: Sequence[str] = (), until_samples: int | None = None):
        self._peer, self._batch_size, self._ranks, self._left = peer, batch_size, ranks, False
        self._samples, self._samples_until, self._callbacks = 0, 0.0, list(callbacks)
        self._until_samples = until_samples
        trained = [(name, tensor) for name, tensor in named_parameters(model) if tensor.requires_grad]
        if not trained:
            raise ValueError('the model has no parameter that is trained')
        self._trained = [tensor for _, tensor in trained]
        self._parameters = [self._told(name, tensor, False) for name, tensor in trained]
        self._locals = [self._told(name, tensor, True) for name, tensor in named_buffers(model)]
        self._buffers = Buffers(self._locals, own_buffers)
        if self._peer is not None and self._locals:
            self._peer.option('buffers', self._buffers.description())
        self._gpus = {one.gpu for one in self._parameters + self._locals if one.gpu is not None}
        self._twins = Twins(optimizer, self._trained)
        self._watch = Watch(model, self._locals)

    def has_left(self) -> bool:
        """leave() or close() was called."""
        return self._left

    def trains_any_of(self, parameters: set[int]) -> bool:
        """Whether a parameter with one of these ids is trained here."""
        return any(id(tensor) in parameters for tensor in self._trained)

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

    def _all_do(self, action: Callable[[Peer], Any]) -> Any:
        """The result of action(peer) in the process that is the peer, in all of its processes."""
        return self._ranks.all_do(lambda: None if self._peer is None else action(self._peer))

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
        answered = self._all_do(lambda peer: peer.start(wait))
        if not answered and self._ranks.is_peer:
            warnings.warn('rumor: nobody has answered yet; training alone until somebody does', stacklevel=3)
        self._twins.before()
        self._put_all()
        self._twins.after()
        self._twins.search_soon()

    def _put_all(self) -> None:
        self._put(self._parameters + self._locals)
        self._ranks.share([one.owner for one in self._locals])

    def _put(self, tensors: list[Tensor]) -> None:
        if self._peer is not None:
            for one in tensors:
                one.put()
        self._ranks.share(self._trained)

    def _warn(self) -> None:
        """Passes the library's warnings on. They are about the line that called step()."""
        while self._peer is not None and (text := self._peer.warning()) is not None:
            warnings.warn(f'rumor: {text}', RuntimeWarning, stacklevel=3)

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
        value = 0.0 if loss is None else float(getattr(loss, 'detach', lambda: loss)())
        self._take()
        self._twins.before()
        goes_on: bool = self._all_do(lambda peer: peer.step(rows * self._ranks.count, value))
        self._put(self._parameters)
        self._twins.after()
        self._warn()
        self._call_back()
        return goes_on

    def _call_back(self) -> None:
        for event in self._peer.events() if self._peer is not None else ():
            for one in self._callbacks:
                for name in ('on_event', f'on_{event["kind"]}'):
                    if hasattr(one, name):
                        getattr(one, name)(event)

    @contextlib.contextmanager
    def shared_weights(self) -> Iterator[None]:
        """Within this block the model holds the weights that all peers share, without what this peer has learned and
        not sent yet, and the means of all peers' buffers: `with swarm.shared_weights(): evaluate(model)`. Do not train
        in it: changes are dropped."""
        self._take()
        self._all_do(lambda peer: peer.show_shared(True))
        self._put_all()
        try:
            yield
        finally:
            self._all_do(lambda peer: peer.show_shared(False))
            self._put_all()

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Returns what this peer has learned and not sent yet, by parameter: for a checkpoint of one's own, beside the
        optimizer's state. A peer with a state directory does not need it."""
        with self.shared_weights():
            shared = [tensor.detach().clone() for tensor in self._trained]
        return {one.name: tensor.detach() - value
                for one, tensor, value in zip(self._parameters, self._trained, shared)}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """After join(weights='swarm'): gives the model back what state_dict() returned in an earlier process. The next
        step() takes it for something that the peer has learned."""
        if set(state) != {one.name for one in self._parameters}:
            raise ValueError('this state is of another model: its parameters have other names')
        for one, tensor in zip(self._parameters, self._trained):
            tensor.detach().add_(state[one.name].to(tensor.device, tensor.dtype))

    def leave(self, wait: float = 10.0, keep_model: bool = False) -> None:
        """Ends the peer and writes the weights that all peers share into the model. What this peer has learned and not
        sent yet goes to the others before (a few bits a parameter), so the model holds it too.

        Waits up to `wait` seconds until the others have finished too. Writes a checkpoint if join() was given a
        directory. keep_model: the model stays as it is, and the run does not get what was changed in it since the last
        step(): for a model that had its best weights loaded again. Further calls do nothing."""
        if self._left:
            return
        self._left = True
        everything = self._trained + [one.owner for one in self._locals]
        kept = [tensor.detach().clone() for tensor in everything] if keep_model else []
        try:
            self._watch.look(at_names=True)
            self._take()
        except RuntimeError:  # the model is not the one that joined
            self.close()
            raise
        self._all_do(lambda peer: self._end(peer, wait, keep_model))
        self._put_all()
        self._call_back()
        self._buffers.warn_of_unshared()
        for tensor, value in zip(everything, kept):
            tensor.detach().copy_(value)

    def leave_in_background(self, wait: float = 10.0) -> concurrent.futures.Future[None]:
        """leave() on another thread. Do not touch the model until the future is done; its result() raises what leave()
        would have raised."""
        pool = concurrent.futures.ThreadPoolExecutor(1, 'rumor-leave')
        left = pool.submit(self.leave, wait)
        pool.shutdown(wait=False)
        return left

    @staticmethod
    def _end(peer: Peer, wait: float, keep_model: bool) -> None:
        if keep_model:
            peer.take_back()
        peer.leave(wait)

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
        status: dict[str, Any] = self._all_do(lambda peer: peer.status())
        return status

    def metrics(self) -> dict[str, float]:
        """Returns the numbers of status() by flat names, such as 'traffic.sent_bytes': for wandb.log(), or a line each
        for TensorBoard's add_scalar()."""
        return flat(self.status())

    @property
    def count(self) -> int:
        """The peers that train now, this one included."""
        return len(trainers(self.status()))

    @property
    def number(self) -> int:
        """This peer's number among them, from 0: for samplers and shards. It changes as peers come and go."""
        status = self.status()
        return trainers(status).index(status['node_id'])

    @property
    def samples(self) -> int:
        """Samples that all peers together have seen so far, at most a quarter of a second old. It is cheap enough for
        every step."""
        samples: int = self._all_do(self._recent_samples)
        return samples

    @property
    def progress(self) -> float:
        """How much of the run is over, from 0 to 1: samples divided by join()'s until_samples. For learning rates that
        follow the run instead of this peer's own steps, so that one who joins late has the rate of the others:
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1 - 0.98 * swarm.progress)."""
        if not self._until_samples:
            raise ValueError('progress is not known: join() was called without until_samples')
        return min(1.0, self.samples / self._until_samples)

    def _recent_samples(self, peer: Peer) -> int:
        now = time.monotonic()
        if now >= self._samples_until:
            self._samples, self._samples_until = peer.status().get('samples', 0), now + 0.25
        return self._samples

    def __enter__(self) -> Swarm:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.leave()
        else:
            self.close()
