"""What cases with PyTorch share: two peers in one process, or one, that train something small."""
import os
import sys
import time
import warnings

import torch

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from peers import free_ports

FAST = {'quiet': True, 'overhead': 1, 'checkpoint_seconds': 0.2}


def train(model, optimizer, batch, steps, *swarms, pause=0.001):
    """Steps of the optimizer on batch() = inputs, targets. Returns the last loss and all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        for _ in range(steps):
            inputs, targets = batch()
            loss = ((model(inputs) - targets) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for swarm in swarms:
                swarm.step(loss=loss)
            time.sleep(pause)
    return loss.item(), ' '.join(str(one.message) for one in caught)


def free_port():
    return free_ports(1)[0]


def house(offset=200.0):
    weight = torch.randn(8, 1)

    def batch():
        inputs = torch.randn(16, 8)
        return inputs, inputs @ weight + offset
    return batch


def raises(kind, part, action):
    try:
        action()
    except kind as error:
        assert part in str(error), error
        return
    raise AssertionError(f'no {kind.__name__} about {part!r}')
