"""Who may join whom: peers of one run are alike, or are told in what they are not, or take the run's weights."""
import os
import threading
import time
import warnings

import rumor
import torch
from torch import nn

from torch_case import FAST, free_port, raises, train


def frozen_parameters_are_part_of_the_identity():
    def model(base):
        torch.manual_seed(1)
        made = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        made[0].requires_grad_(False)
        made[0].weight.mul_(base)
        return made
    port = f'127.0.0.1:{free_port()}'
    with rumor.join('adapters', model(1), listen=port, options=FAST):
        raises(rumor.MismatchError, 'have what is here: the parameters that are not trained;',
               lambda: rumor.join('adapters', model(2), seeds=port, options=FAST))
        rumor.join('adapters', model(1), seeds=port, options=FAST).leave(1)


def frozen_parameters_need_no_numpy():
    from rumor.tensors import frozen_hash
    model = nn.Linear(4, 4)
    model.weight.requires_grad_(False)
    known, numpy = frozen_hash(model), torch.Tensor.numpy
    torch.Tensor.numpy = None  # a fresh virtual environment may have PyTorch without numpy
    try:
        assert frozen_hash(model) == known
    finally:
        torch.Tensor.numpy = numpy


def wrong_arguments_are_told():
    model = nn.Linear(3, 3)
    with rumor.join('samples', model, options=FAST) as swarm:
        raises(ValueError, 'samples=-1', lambda: swarm.step(samples=-1))
    sharded = nn.Linear(3, 3)
    sharded.weight = nn.Parameter(torch.zeros(3, 3).as_subclass(type('DTensor', (torch.Tensor,), {})))  # a stand-in
    raises(TypeError, 'weight is sharded', lambda: rumor.join('sharded', sharded, options=FAST))
    raises(TypeError, 'meta', lambda: rumor.join('meta', nn.Linear(3, 3, device='meta'), options=FAST))


def names_are_those_of_the_plain_model():
    from rumor.tensors import named_parameters, plain_name
    assert plain_name('_orig_mod.module.layer.0.weight') == 'layer.0.weight'
    wrapped = nn.Module()
    wrapped.module = nn.Linear(2, 2)
    assert [name for name, _ in named_parameters(wrapped)] == ['weight', 'bias']
    wrapped.weight = nn.Parameter(torch.zeros(2))
    assert [name for name, _ in named_parameters(wrapped)] == ['weight', 'module.weight', 'module.bias']


def _peer_of(seed, **more):
    """A model with weights of this seed, and what joins it to a run of them."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
    options = {**FAST, **more.pop('options', {})}
    return model, lambda: rumor.join('takes', model, density=0.1, options=options, **more)


def _batch():
    inputs = torch.randn(16, 16)
    return inputs, inputs[:, :4] * 2


def _weights(model):
    return torch.cat([one.detach().flatten() for one in model.parameters()])


def weights_of_the_swarm_take_the_place_of_ones_own():
    port = f'127.0.0.1:{free_port()}'
    first, join_first = _peer_of(1, listen=port)
    swarm = join_first()
    fresh, join_fresh = _peer_of(2, seeds=port, weights='swarm')
    joined = [join_fresh()]  # a run without an update yet
    with swarm.shared_weights():
        assert torch.equal(_weights(fresh), _weights(first))
    train(first, torch.optim.SGD(first.parameters(), 0.05), _batch, 200, swarm)
    late, join_late = _peer_of(3, seeds=port, weights='swarm')
    for part in late.parameters():
        part.data.mul_(50)
    joined.append(join_late())
    assert joined[-1].status()['samples'] >= 100, 'the first step knows how far the run is'
    assert (_weights(late) - _weights(first)).abs().max() < 0.2, 'the drift of the first peer alone'
    for model, one in ((fresh, joined[0]), (late, joined[1])):
        train(model, torch.optim.SGD(model.parameters(), 0.05), _batch, 100, one)
    leaving = [threading.Thread(target=one.leave) for one in (*joined, swarm)]
    for one in leaving:
        one.start()
    for one in leaving:
        one.join()
    digests = [one.status()['digest'] for one in (*joined, swarm)]
    assert digests[0] == digests[1] == digests[2], digests
    assert torch.equal(_weights(late), _weights(first)) and torch.equal(_weights(fresh), _weights(first))


def a_cell_that_runs_twice_goes_on(folder):
    """The second join() has a trained model at hand, no seeds, and its state directory."""
    model, join = _peer_of(1, state=folder, weights='swarm')
    swarm = join()
    train(model, torch.optim.SGD(model.parameters(), 0.05), _batch, 100, swarm)
    time.sleep(0.5)
    swarm.leave(0.5)
    trained = _weights(model)
    for part in model.parameters():
        part.data.add_(1)
    swarm = join()
    with swarm.shared_weights():
        assert torch.equal(_weights(model), trained)
    train(model, torch.optim.SGD(model.parameters(), 0.05), _batch, 10, swarm)
    swarm.leave(0.5)
    own, join_own = _peer_of(2, state=folder)
    raises(rumor.MismatchError, "weights='swarm'", join_own)


def a_cell_that_was_stopped_runs_again(folder):
    """Without leave(), as after Ctrl-C: the former peer has the directory, the address and perhaps the model."""
    port = f'127.0.0.1:{free_port()}'
    model, join = _peer_of(1, state=folder, listen=port, weights='swarm')
    former = join()
    while not os.path.exists(os.path.join(folder, 'checkpoint.1')):
        train(model, torch.optim.SGD(model.parameters(), 0.05), _batch, 10, former)
    raises(rumor.RumorError, 'address already in use', lambda: rumor.join('another', nn.Linear(2, 2), listen=port,
                                                                          options=FAST))
    for same_model in (False, True):
        if not same_model:
            model, join = _peer_of(2, state=folder, listen=port, weights='swarm')
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            swarm = join()
        assert ['has not left; it ends now' in str(one.message) for one in caught] == [True], caught
        assert not former.step() and swarm.status()['samples'] > 0, swarm.status()
        former = swarm
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        elsewhere = rumor.join('elsewhere', model, options=FAST)  # one model is in one run
    assert "the former peer of 'takes'" in str(caught[0].message), caught
    assert not former.step() and elsewhere.step()
    elsewhere.leave(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        join().leave(0.1)


def what_differs_from_a_state_directory_is_named(folder):
    model, join = _peer_of(1, state=folder)
    swarm = join()
    train(model, torch.optim.SGD(model.parameters(), 0.05), _batch, 20, swarm)
    swarm.leave(0.5)
    raises(rumor.MismatchError, 'have what is here: the initial weights', _peer_of(2, state=folder)[1])
    frozen = _peer_of(1, state=folder, options={'frozen': 'another base'})[1]
    raises(rumor.MismatchError, 'have what is here: the parameters that are not trained', frozen)
    wider = nn.Sequential(nn.Linear(16, 33), nn.Tanh(), nn.Linear(33, 4))
    for weights in ('own', 'swarm'):
        raises(rumor.MismatchError, 'tensor 0.weight (33 x 16), tensor 0.bias (33)',
               lambda weights=weights: rumor.join('takes', wider, state=folder, density=0.1, weights=weights,
                                                  options=FAST))


def what_differs_is_named():
    port = f'127.0.0.1:{free_port()}'
    _, join = _peer_of(1, listen=port)
    with join():
        raises(rumor.MismatchError, 'have what is here: the initial weights;', _peer_of(2, seeds=port)[1])
        raises(rumor.MismatchError, 'compress.grid_bits = 20', _peer_of(1, seeds=port, options={
            'compress.grid_bits': 20})[1])
        wider = nn.Sequential(nn.Linear(16, 33), nn.Tanh(), nn.Linear(33, 4))
        for weights in ('own', 'swarm'):
            raises(rumor.MismatchError, 'tensor 0.weight (33 x 16), tensor 0.bias (33)',
                   lambda weights=weights: rumor.join('takes', wider, seeds=port, density=0.1, weights=weights,
                                                      options=FAST))
        turned = nn.Module()
        for name, part in (('2', nn.Linear(32, 4)), ('0', nn.Linear(16, 32))):
            turned.add_module(name, part)
        raises(rumor.MismatchError, 'another order, in which this comes elsewhere: tensor 2.weight (4 x 32)',
               lambda: rumor.join('takes', turned, seeds=port, density=0.1, options=FAST))
        raises(rumor.MismatchError, 'another order, in which this comes elsewhere: tensor 2.weight (4 x 32)',
               lambda: rumor.join('takes', turned, seeds=port, density=0.1, weights='swarm', options=FAST))
    raises(rumor.RumorError, 'connection refused', _peer_of(1, seeds=port, weights='swarm', wait=1)[1])
    raises(rumor.RumorError, 'wants own or swarm', _peer_of(1, weights='theirs')[1])
