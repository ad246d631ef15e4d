"""Rumor for PyTorch: train one model on machines of different owners, with three added lines.

    swarm = rumor.join('my-run', model, seeds=['192.0.2.7:7711'])
    ...
        optimizer.step()
        swarm.step()
    ...
    swarm.leave()
"""
from ._library import MismatchError, RumorError
from .callbacks import lightning_callback, trainer_callback
from .joining import join
from .peer import Peer
from .swarm import Swarm

__all__ = ['MismatchError', 'Peer', 'RumorError', 'Swarm', 'join', 'lightning_callback', 'trainer_callback']
