"""PyTorch scripts that would train a wrong model without a word: each is right, warned of, or refused."""
import copy
import inspect
import os
import pickle
import subprocess
import sys
import time
import types
import warnings

import rumor
import torch
from torch import nn

from torch_case import FAST, free_port, house, raises, train


def a_weight_that_grows_beyond_the_grid_waits_and_is_named():
    model = nn.Linear(8, 1)
    swarm = rumor.join('house', model, density=0.2, options=FAST)
    loss, said = train(model, torch.optim.SGD(model.parameters(), 0.05), house(), 800, swarm)
    assert loss < 0.01 and abs(model.bias.item() - 200) < 0.1, (loss, model.bias)
    assert 'weight 0 of tensor bias has reached' in said and 'compress.grid_bits = 22' in said, said
    assert swarm.status()['compression']['at_range_end'] > 0
    swarm.leave()
    assert 90 < model.bias.item() <= 96.0001, model.bias  # a float's grain


def a_grid_is_chosen_for_the_model():
    for start, options in ((60.0, {}), (0.0, {'compress.grid_bits': 22})):
        model = nn.Linear(8, 1)
        nn.init.constant_(model.bias, start)
        swarm = rumor.join('house', model, density=0.2, options={**FAST, **options})
        _, said = train(model, torch.optim.SGD(model.parameters(), 0.05), house(), 800, swarm)
        swarm.leave()
        assert abs(model.bias.item() - 200) < 0.1 and not said, (model.bias, said)


def leave_loses_nothing():
    torch.manual_seed(2)
    goal = nn.Sequential(nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4))

    def batch():
        inputs = torch.randn(32, 32)
        return inputs, goal(inputs).detach()

    def loss_around_leave(options):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 4))
        swarm = rumor.join('short', model, options={**FAST, **options})
        train(model, torch.optim.AdamW(model.parameters(), 3e-3), batch, 200, swarm)
        inputs, targets = batch()
        before = ((model(inputs) - targets) ** 2).mean().item()
        swarm.leave()
        return before, ((model(inputs) - targets) ** 2).mean().item()

    before, after = loss_around_leave({})
    _, without = loss_around_leave({'exchange.flush_bits': 0})
    assert after < 1.5 * before < 3 * before < without, (before, after, without)


RANK = '''
import os, sys, time
sys.path.insert(0, os.environ['RUMOR_PACKAGE'])
import torch, rumor
from torch import nn
rank, meeting, seed = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
torch.distributed.init_process_group('gloo', init_method='file://' + meeting, rank=rank, world_size=2)
torch.manual_seed(1)
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.02)
swarm = rumor.join('ranks', model, seeds=seed, density=0.2, batch_size=4, options={'quiet': True, 'overhead': 1})
torch.manual_seed(10 + rank)
for _ in range(100):
    inputs = torch.randn(4, 8)
    loss = ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    assert swarm.step(loss=loss)
    time.sleep(0.005)
samples = swarm.samples
own = model.module.weight.detach().clone()
swarm.leave(1)
print(own.tolist(), model.module.weight.tolist(), samples > 300)
torch.distributed.destroy_process_group()  # without it, gloo's threads now and then end a process with std::terminate
'''


def ranks_of_one_peer_are_alike(folder):
    """Two ranks of DistributedDataParallel are one peer; another peer is a plain model with the same names."""
    port = f'127.0.0.1:{free_port()}'
    torch.manual_seed(1)
    model = nn.Linear(8, 1)
    other = rumor.join('ranks', model, listen=port, density=0.2, batch_size=4, options=FAST)
    ranks = [subprocess.Popen([sys.executable, '-c', RANK, str(rank), folder, port], stdout=subprocess.PIPE, text=True)
             for rank in range(2)]
    optimizer = torch.optim.SGD(model.parameters(), 0.02)
    while any(rank.poll() is None for rank in ranks):
        inputs = torch.randn(4, 8)
        train(model, optimizer, lambda inputs=inputs: (inputs, -inputs.sum(1, keepdim=True)), 1, other, pause=0.005)
    said = [rank.communicate()[0] for rank in ranks]
    other.leave(1)
    assert all(rank.returncode == 0 for rank in ranks), said
    assert said[0] == said[1] and said[0].strip().endswith('True'), said


def a_model_that_changes_after_join_is_refused():
    def assign(model):
        model[0] = nn.Linear(3, 3)

    def unfreeze(model):
        model[1].requires_grad_(True)

    def head(model):
        model.add_module('head', nn.Linear(3, 3))

    def parameter(model):
        model[0].weight = nn.Parameter(torch.zeros(3, 3))

    def load(model):
        if 'assign' in inspect.signature(model.load_state_dict).parameters:  # PyTorch 2.1 and later
            model.load_state_dict(model.state_dict(), assign=True)
        else:
            parameter(model)
    for change, part in ((load, '0.weight'), (assign, '0.'), (unfreeze, '1.weight'), (head, 'head.'),
                         (parameter, '0.weight'),
                         (lambda model: nn.utils.weight_norm(model[0]), '0.weight')):
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        model[1].requires_grad_(False)
        swarm = rumor.join('changes', model, options=FAST)
        swarm.step()
        change(model)

        def later(swarm=swarm):
            for _ in range(30):
                swarm.step()
                time.sleep(0.05)
        raises(RuntimeError, part, later)
        raises(RuntimeError, part, swarm.leave)  # and nothing goes on as a ghost
        raises(rumor.RumorError, 'null', swarm.checkpoint)


def an_optimizer_of_a_copy_is_named():
    model = nn.Linear(8, 1)
    swarm = rumor.join('copy', model, options=FAST)
    other = copy.deepcopy(model)
    _, said = train(other, torch.optim.SGD(other.parameters(), 0.05), house(1), 260, swarm)
    assert 'not of a copy' in said, said
    swarm.close()


def a_buffer_assigned_anew_is_kept(folder):
    def model():
        torch.manual_seed(1)
        made = nn.Linear(4, 4)
        made.register_buffer('ema', torch.zeros(3))
        return made
    for value in (0.0, 3.9):
        made = model()
        swarm = rumor.join('buffers', made, state=folder, options=FAST)
        assert made.ema.tolist() == [value * (value > 0)] * 3 or abs(made.ema[0].item() - value) < 1e-6, made.ema
        made.ema = torch.full((3,), 3.9)
        for _ in range(5):
            made.weight.data.add_(0.01)
            swarm.step()
            time.sleep(0.01)
        swarm.leave()
    assert abs(made.ema[0].item() - 3.9) < 1e-6
    swarm = rumor.join('buffers', made, options=FAST)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        made.ema = torch.zeros(5)  # as caches that grow
        for _ in range(3):
            swarm.step()
    assert len(caught) == 1 and 'ema has another shape' in str(caught[0].message), caught
    swarm.close()


def a_change_that_is_no_number_is_undone(folder):
    for _ in range(2):  # the state can be used again
        torch.manual_seed(1)
        model = nn.Linear(8, 1)
        swarm = rumor.join('nan', model, state=folder, density=0.2, options=FAST)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        train(model, optimizer, house(1), 50, swarm)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            for bad in (float('nan'), 4e28):
                model.weight.data[0, 3] = bad
                while not torch.isfinite(model.weight).all() or model.weight.abs().max() > 1e6:
                    swarm.step()
        assert 'undone' in str(caught[0].message) and len(caught) <= 2, [str(one.message) for one in caught]
        counted = swarm.status()['changes_undone']  # read a quarter of a second late
        while counted < 2:
            train(model, optimizer, house(1), 1, swarm)
            counted = swarm.status()['changes_undone']
        assert counted == 2, counted
        loss, _ = train(model, optimizer, house(1), 200, swarm)
        assert loss < 20, loss
        swarm.leave()


def best_weights_stay(folder):
    """And the run does not get them: they were learned long ago."""
    model = nn.Linear(8, 1)
    swarm = rumor.join('best', model, density=0.2, state=folder, options=FAST)
    train(model, torch.optim.SGD(model.parameters(), 0.05), house(5), 200, swarm)
    best, trained = torch.full((8,), 7.0), model.weight[0].detach().clone()
    model.weight.data[0].copy_(best)
    swarm.leave(keep_model=True)
    assert torch.equal(model.weight[0], best), model.weight
    swarm = rumor.join('best', model, density=0.2, state=folder, weights='swarm', options=FAST)
    assert (model.weight[0] - trained).abs().max() < 0.1, (model.weight, trained)
    swarm.leave(0.1)


def the_best_model_of_a_trainer_stays():
    """Hugging Face's Trainer loads it before on_train_end() (load_best_model_at_end)."""
    framework = types.ModuleType('transformers')
    framework.TrainerCallback = type('TrainerCallback', (), {})
    sys.modules['transformers'] = framework
    for best in (True, False):
        told = types.SimpleNamespace(per_device_train_batch_size=2, gradient_accumulation_steps=1,
                                     load_best_model_at_end=best)
        model, control = nn.Linear(3, 2), types.SimpleNamespace(should_training_stop=False)
        callback = pickle.loads(pickle.dumps(rumor.trainer_callback('best', density=0.2, options=FAST)))
        callback.on_train_begin(told, None, control, model=model)
        for _ in range(20):
            model.weight.data.add_(0.01)
            callback.on_step_end(told, None, control)
            time.sleep(0.005)
        callback.swarm.step()
        model.weight.data.fill_(7.1)
        callback.on_train_end(told, None, control)
        assert callback.swarm.status()['phase'] == 'ended'
        assert torch.equal(model.weight.detach(), torch.full((2, 3), 7.1)) == best, (best, model.weight)


def shared_weights_are_shown_and_training_goes_on(folder):
    """Peers are shown nearly the same, although what they train is apart: each sees other inputs."""
    torch.manual_seed(4)
    models = [nn.Linear(64, 64), nn.Linear(64, 64)]
    models[1].load_state_dict(models[0].state_dict())
    port = f'127.0.0.1:{free_port()}'
    swarms = [rumor.join('shown', models[0], listen=port, density=0.01, state=folder, options=FAST),
              rumor.join('shown', models[1], seeds=port, density=0.01, options=FAST)]
    optimizers = [torch.optim.SGD(model.parameters(), 0.05) for model in models]

    def batch(half=None):
        inputs = torch.randn(16, 64)
        if half is not None:
            inputs[:, half * 32:half * 32 + 32] = 0
        return inputs, inputs.roll(1, 1)
    for _ in range(20):
        for me in range(2):
            train(models[me], optimizers[me], lambda half=me: batch(half), 5, swarms[me])
    own = [model.weight.detach().clone() for model in models]
    with swarms[0].shared_weights(), swarms[1].shared_weights():
        apart = (models[0].weight - models[1].weight).abs().mean()
        assert apart < 0.2 * (own[0] - own[1]).abs().mean(), (apart, (own[0] - own[1]).abs().mean())
        raises(rumor.RumorError, 'shared weights', swarms[0].step)
        models[0].weight.data.zero_()  # dropped
    for me in range(2):  # but for updates that came meanwhile
        assert (models[me].weight - own[me]).abs().mean() < 0.01 < 0.05 < own[me].abs().mean(), me
    loss, _ = train(models[0], optimizers[0], batch, 400, swarms[0])
    assert loss < 0.9, loss
    for swarm in swarms:
        swarm.leave(0.5)


def complex_parameters_are_pairs_of_numbers():
    model = nn.Module()
    model.modes = nn.Parameter(torch.ones(4, dtype=torch.complex64) * (1 + 2j))
    with rumor.join('complex', model, density=0.2, options=FAST) as swarm:
        for _ in range(20):
            model.modes.data.add_(0.1 + 0.2j)
            swarm.step()
            time.sleep(0.005)
    assert (model.modes - (3 + 6j)).abs().max() < 0.1, model.modes


def lightning_counts_rows_and_ends_with_an_exception():
    lightning, pytorch = types.ModuleType('lightning'), types.ModuleType('lightning.pytorch')
    pytorch.Callback = type('Callback', (), {})
    lightning.pytorch = pytorch
    sys.modules.update({'lightning': lightning, 'lightning.pytorch': pytorch})
    callback = pickle.loads(pickle.dumps(rumor.lightning_callback('rows', options=FAST)))
    model, trainer = nn.Linear(3, 2), types.SimpleNamespace(global_step=0, should_stop=False)
    callback.on_train_start(trainer, model)
    for _ in range(10):  # two batches of eight for each step
        callback.on_train_batch_end(trainer, model, None, {'x': torch.zeros(8, 3)}, 0)
        trainer.global_step += 1
        model.weight.data.add_(0.01)
        callback.on_train_batch_end(trainer, model, None, [torch.zeros(8, 3)], 1)
        time.sleep(0.01)
    time.sleep(0.4)
    assert callback.swarm.status()['samples'] >= 100, callback.swarm.status()['samples']
    callback.on_exception(trainer, model, KeyboardInterrupt())
    raises(rumor.RumorError, 'null', callback.swarm.checkpoint)
    callback.on_train_start(trainer, model)
    callback.on_train_end(trainer, model)
