"""join() makes a PyTorch model a peer of a run."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Mapping, Sequence

from .former import Place, end_former, note
from .peer import Peer
from .ranks import Ranks
from .swarm import Swarm
from .tensors import frozen_hash

if TYPE_CHECKING:
    import torch


def join(run: str, model: torch.nn.Module, *, seeds: str | Sequence[str] = (), listen: str | None = None,
         status: str | None = None, state: str | os.PathLike[str] | None = None,
         density: float | Literal['auto'] = 'auto', batch_size: int = 1, until_samples: int | None = None,
         wait: float = 30.0, optimizer: torch.optim.Optimizer | None = None, weights: str = 'own',
         callbacks: Sequence[Any] = (), own_buffers: Sequence[str] = (),
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
    density        share of all parameters that an update sends for each step. 'auto': 0.001, or more where the run is
                   so short (until_samples) that a parameter would be sent less than 25 times; 0.1 at most
    batch_size     samples per step, unless step() is given another number
    until_samples  step() returns False when all peers together have seen this many samples
    wait           seconds to wait for the first answer
    optimizer      only needed for one that trains copies of the parameters instead of them, such as float masters in
                   its param_groups: the copies get the changes of others, too. Copies in the state of an optimizer of
                   these parameters (Lookahead, Schedule-Free) are found without it
    weights        'own': the model begins the run with its weights, which must be equal on all peers. 'swarm': it takes
                   the run's weights, from the checkpoint in `state` or from the seeds, whatever its own are: for a
                   model that was loaded from a file, or trained before. The first peer of a run has neither, and
                   begins with its own. join() then waits as long as the weights take to come
    callbacks      objects with any of these methods: on_joined, on_left and on_lost (another peer; lost: its link ended
                   without a goodbye), on_behind (updates arrive late or are held back), on_phase, on_log,
                   on_progress, and on_event for all. Each gets a dict with at least 'kind', 'level' and 'text', from
                   within step() and leave(), on their thread
    own_buffers    names of buffers that stay this peer's own, or patterns such as 'ema.*'; '*' for all
    options        any other options of rumor.h and keys of run files: {'network.up_mbit': 10}

    Parameters that need no gradient are left unchanged; a hash of them is part of the run's identity, so peers with
    unlike ones (LoRA over another base) are refused. options={'frozen': 'any text'} takes the place of the hash.
    Buffers, such as running statistics of BatchNorm, are each peer's own while it trains. In shared_weights() and after
    leave() they are the means over all peers, equal everywhere; integers are the greatest of all. A peer that joins
    late begins with these. Checkpoints contain them, but not the optimizer's state: save it as usual. The library
    accesses tensors on a CUDA device directly if it has its plugin. It copies tensors on other devices, or of other
    types than float32 and bfloat16, twice per step.

    A peer with several processes (DistributedDataParallel) calls join() and everything else in all of them, with the
    same arguments and the wrapped model. The first process is the peer; batch_size counts the rows of one process.

    Messages go to logging.getLogger('rumor'): logging.basicConfig(level=logging.INFO) shows them all, by default only
    warnings appear. options={'messages': 'stderr'} prints them instead.

    A peer of this process that has not left ends first, with a warning, if it trains the same model, or has the same
    run and the same `state` or `listen`: a notebook's cell may be stopped and run again.

    Raises MismatchError if the others have another model or other initial weights, RumorError for other failures."""
    ranks = Ranks(model)
    told = {'listen': listen, 'status': status, 'state': None if state is None else os.fspath(state),
            'compress.density': None if density == 'auto' else density, 'until_samples': until_samples,
            'steps': until_samples and max(1, until_samples // max(1, batch_size * ranks.count)), 'weights': weights,
            'messages': 'events', **(options or {})}
    place = Place(os.fspath(run), told['state'], listen)
    end_former(place, model)
    peers: list[Peer] = []  # one, or none in a process that is not the first
    ranks.all_do(lambda: peers.append(_peer(run, model, told, seeds)))
    swarm = Swarm(peers[0] if peers else None, model, batch_size, ranks, optimizer, callbacks, own_buffers,
                  until_samples)
    try:
        swarm._start(wait)
    except BaseException:  # Ctrl-C, too: the address and the directory are free at once
        swarm.close()
        raise
    note(swarm, place)
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
