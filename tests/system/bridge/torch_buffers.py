"""Buffers: running statistics of BatchNorm are the means of all peers where the shared weights are shown."""
import threading
import time
import warnings

import rumor
import torch
from torch import nn

from torch_case import FAST, free_port, raises, train


def _model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))


def _inputs_around(middle):
    def batch():
        inputs = torch.randn(32, 8) + middle
        return inputs, inputs[:, :2]
    return batch


def _two_peers(run, steps, **more):
    """Two peers of one run whose inputs lie around 0 and around 3, before they leave."""
    port = f'127.0.0.1:{free_port()}'
    models = _model(), _model()
    swarms = [rumor.join(run, models[0], listen=port, options=FAST, density=0.2, **more),
              rumor.join(run, models[1], seeds=port, options=FAST, density=0.2, **more)]
    optimizers = [torch.optim.SGD(model.parameters(), 0.02) for model in models]
    for _ in range(steps):
        for model, optimizer, swarm, middle in zip(models, optimizers, swarms, (0, 3)):
            train(model, optimizer, _inputs_around(middle), 1, swarm)
    return models, swarms


def _leave_both(swarms):
    other = swarms[1].leave_in_background(10)
    swarms[0].leave(10)
    other.result()


def unlike_data_end_in_equal_models():
    models, swarms = _two_peers('norms', 300)
    own = [model[1].running_mean.clone() for model in models]
    assert (own[0] - own[1]).abs().max() > 0.3, own
    train(models[0], torch.optim.SGD(models[0].parameters(), 0.0), _inputs_around(0), 3, swarms[0])
    own[0] = models[0][1].running_mean.clone()
    _leave_both(swarms)
    digests = [swarm.status()['digest'] for swarm in swarms]
    assert digests[0] == digests[1], digests
    for (name, one), other in zip(models[0].state_dict().items(), models[1].state_dict().values()):
        assert torch.equal(one, other), name
    assert torch.allclose(models[0][1].running_mean, (own[0] + own[1]) / 2, atol=1e-6)
    assert models[0][1].num_batches_tracked == 303
    inputs = torch.randn(5, 8)
    assert torch.equal(models[0].eval()(inputs), models[1].eval()(inputs))


def buffers_of_16_bits_are_means_too():
    """As those of a model after half() or to(torch.bfloat16), whose parameters are copied in float32."""
    kinds = torch.float16, torch.bfloat16
    models = _model().half(), _model().half()
    for model in models:
        for kind in kinds:
            model.register_buffer(f'of_{str(kind)[6:]}', torch.zeros(3, dtype=kind))
    port = f'127.0.0.1:{free_port()}'
    swarms = [rumor.join('halves', models[0], listen=port, options=FAST, density=0.2),
              rumor.join('halves', models[1], seeds=port, options=FAST, density=0.2)]
    for step in range(100):
        for model, swarm, value in zip(models, swarms, (1, 2)):
            with torch.no_grad():
                model[0].weight += 0.01 * value
                for kind in kinds:
                    getattr(model, f'of_{str(kind)[6:]}')[:2] = torch.tensor([value, 1000 * value + step % 2])
                model[1].running_var.fill_(value + 1)
            swarm.step(1)
            time.sleep(0.001)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        _leave_both(swarms)
    for model in models:
        assert model.of_float16.tolist() == [1.5, 1501, 0], model.of_float16
        assert model.of_bfloat16[0] == 1.5, model.of_bfloat16
        assert (model[1].running_var == 2.5).all() and model[1].running_var.dtype == torch.float16
    for (name, one), other in zip(models[0].state_dict().items(), models[1].state_dict().values()):
        assert torch.equal(one, other), name


def shared_weights_come_with_the_means():
    models, swarms = _two_peers('shown', 1200)
    own = [model[1].running_mean.clone() for model in models]
    with swarms[0].shared_weights():
        shown = models[0][1].running_mean.clone()
    assert torch.equal(models[0][1].running_mean, own[0])
    between = (shown > torch.minimum(*own)) & (shown < torch.maximum(*own))
    assert between.float().mean() > 0.6, (shown, own)
    _leave_both(swarms)


def a_late_joiner_begins_with_the_means():
    """It has the others' statistics before its first step, and no part in the means until it trains."""
    port = f'127.0.0.1:{free_port()}'
    model, late = _model(), _model()
    first = rumor.join('late', model, listen=port, options=FAST, density=0.2)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    train(model, optimizer, _inputs_around(3), 200, first, pause=0.01)  # a first report comes after a second
    over = threading.Event()

    def go_on():
        while not over.is_set():
            train(model, optimizer, _inputs_around(3), 1, first, pause=0.01)
    training = threading.Thread(target=go_on)
    training.start()
    second = rumor.join('late', late, seeds=port, options=FAST, density=0.2, weights='swarm')
    over.set()
    training.join()
    assert late[1].num_batches_tracked > 0, 'the statistics are those of a new model'
    own = model[1].running_mean.clone()
    assert (late[1].running_mean - own).abs().max() < 0.8, (late[1].running_mean, own)
    second.leave(0.5)
    first.leave(0.5)
    assert torch.equal(model[1].running_mean, own), (model[1].running_mean, own)


def own_buffers_stay():
    models, swarms = _two_peers('own', 60, own_buffers=['1.running_*'])
    own = [model[1].running_var.clone() for model in models]
    _leave_both(swarms)
    for model, before in zip(models, own):
        assert torch.equal(model[1].running_var, before)
    raises(ValueError, "no buffer '2.ema'", lambda: rumor.join('own', _model(), own_buffers=['2.ema'], options=FAST))


def _pair(run, models, *more):
    """Two models as peers, one of them with further arguments of join()."""
    port = f'127.0.0.1:{free_port()}'
    swarms = [rumor.join(run, models[0], listen=port, options=FAST),
              rumor.join(run, models[1], seeds=port, options=FAST, **dict(*more))]
    optimizers = [torch.optim.SGD(model.parameters(), 0.01) for model in models]
    said = ''
    for _ in range(150):
        for model, optimizer, swarm in zip(models, optimizers, swarms):
            said += train(model, optimizer, _inputs_around(1), 1, swarm, pause=0.01)[1]
    _leave_both(swarms)
    return said


def a_compiled_model_has_the_same_buffers():
    compiled, plain = nn.Sequential(), _model()
    compiled.add_module('_orig_mod', _model())  # as torch.compile names it
    assert 'other buffers' not in _pair('compiled', (compiled, plain))
    assert torch.equal(compiled[0][1].running_mean, plain[1].running_mean)


def peers_that_share_other_buffers_are_told():
    said = _pair('unlike', (_model(), _model()), {'own_buffers': ['1.running_var']})
    assert "another peer's model has other buffers" in said, said


def a_best_model_keeps_its_buffers():
    model = _model()
    swarm = rumor.join('best', model, options=FAST)
    train(model, torch.optim.SGD(model.parameters(), 0.02), _inputs_around(1), 30, swarm)
    best = {name: value.clone() for name, value in model.state_dict().items()}
    train(model, torch.optim.SGD(model.parameters(), 0.02), _inputs_around(9), 30, swarm)
    model.load_state_dict(best)
    swarm.leave(0.2, keep_model=True)
    for name, value in model.state_dict().items():
        assert torch.equal(value, best[name]), name


def a_buffer_that_is_too_large_is_named():
    model = _model()
    model.register_buffer('table', torch.zeros(70_000))
    model.register_buffer('memory', torch.zeros(70_000))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        swarm = rumor.join('large', model, options=FAST)
        train(model, torch.optim.SGD(model.parameters(), 0.02), _inputs_around(1), 5, swarm)
        model.memory += 1
        swarm.leave(0.2)
    said = [str(one.message) for one in caught if 'buffer' in str(one.message)]
    assert len(said) == 1 and 'the buffer memory is this peer' in said[0], said
