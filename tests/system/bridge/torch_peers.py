#!/usr/bin/env python3
"""PyTorch models as peers, in real processes. Skipped (exit status 77) where no python3 here has PyTorch.

usage: torch_peers.py RUMOR LIBRARY PACKAGE SCENARIO
  killed     two scripts train a model with BatchNorm, one is killed and started again: equal digests and weights
  mixed      a script and a `rumor peer` train the built-in MLP in one run: equal digests
  kinds      bfloat16, double, transposed and frozen parameters; moved tensors are told; the model of a run is checked
  device     tensors on a GPU, here one that only copies (bridge/fake_gpu.cc of the unit tests), with the plugin and not
  callbacks  those for Lightning and Hugging Face, called as their trainers call them (stand-ins: neither is needed)
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import peers  # noqa: E402
from peers import free_ports, wait_for  # noqa: E402

SKIPPED = 77


def python_with_torch():
    for python in (sys.executable, '/usr/bin/python3', shutil.which('python3')):
        if python and subprocess.run([python, '-c', 'import torch'], capture_output=True, check=False).returncode == 0:
            return python
    print('no python3 here has PyTorch (python3-torch)')
    sys.exit(SKIPPED)


COMMON = '''
import fractions, json, os, signal, sys, time, warnings
sys.path.insert(0, os.environ['RUMOR_PACKAGE'])
import torch, rumor
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(1)


def say(swarm, **more):
    status = swarm.status()
    print(json.dumps({'digest': status['digest'], 'samples': status['samples'], 'updates': status['updates'],
                      'lost': status['traffic']['updates_lost'], **more}))
'''

KILLED = COMMON + '''
me, listen, status, seed, state = sys.argv[1:]
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
if not os.path.exists(state):
    model[1].num_batches_tracked += 1000
optimizer = torch.optim.Adam(model.parameters(), 0.01)
swarm = rumor.join('torch-killed', model, seeds=[seed], listen=listen, status=status, state=state, density=0.02,
                   batch_size=16, until_samples=60000,
                   options={'checkpoint_seconds': 0.5, 'quiet': True, 'overhead': 1})
batches = int(model[1].num_batches_tracked)
torch.manual_seed(100 + int(me))
while True:
    x = torch.randn(16, 8)
    loss = nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.002)
    if not swarm.step(loss=loss):
        break
swarm.leave(30)
model.eval()
x = torch.randn(2000, 8)
right = (model(x).argmax(1) == (x.sum(1) > 0)).float().mean().item()
say(swarm, right=right, batches=batches, weight=float(model[0].weight.double().sum()),
    norm=[float(one.double().sum()) for one in model[1].buffers()])
'''

MIXED = COMMON + '''
listen, seed, samples = sys.argv[1:]
from torch_data import fashion
x, y = fashion('train')
model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
swarm = rumor.join('fashion-mlp', model, seeds=[seed], listen=listen, batch_size=16, until_samples=int(samples),
                   options={'run.samples': samples, 'exchange.period_ms': 5, 'quiet': True, 'overhead': 0.5})
while True:
    rows = torch.randint(0, len(x), (16,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not swarm.step(loss=loss):
        break
swarm.leave(30)
x, y = fashion('t10k')
say(swarm, right=(model(x).argmax(1) == y).float().mean().item())
'''

KINDS = COMMON + '''
class Kinds(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = nn.Linear(6, 4)
        self.halves = nn.Parameter(torch.ones(5, 3, dtype=torch.bfloat16))
        self.doubles = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.turned = nn.Parameter(torch.arange(6.0).view(2, 3).t())
        self.single = nn.Parameter(torch.tensor(2.0))
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)


model = Kinds()
with rumor.join('kinds', model, density=0.2, options={'quiet': True, 'overhead': 1}) as swarm:
    for _ in range(200):
        with torch.no_grad():
            for p in model.parameters():
                if p.requires_grad:
                    p.add_(0.01 * (3 - p.float()).to(p.dtype))
        time.sleep(0.001)
        assert swarm.step(2, loss=fractions.Fraction(1, 4))  # whatever is a number, numpy's for one
assert swarm.status()['params'] == 24 + 4 + 15 + 3 + 6 + 1
assert abs(swarm.status()['train_loss'] - 0.25) < 1e-6, swarm.status()
assert torch.equal(model.frozen, torch.ones(2))
for name in ('halves', 'doubles', 'turned', 'single'):
    error = (getattr(model, name).double() - 3).abs().max().item()
    assert error < 0.8, (name, error)  # bfloat16 stops where a step is less than its grain
assert not model.turned.is_contiguous() and model.halves.dtype == torch.bfloat16
try:
    with rumor.join('moved', model, options={'quiet': True}) as swarm:
        model.plain.weight.data = model.plain.weight.data.clone()
        swarm.step()
    raise SystemExit('a tensor that moved was not seen')
except RuntimeError as error:
    assert 'plain.weight has moved' in str(error), error
try:
    rumor.join('synthetic', nn.Linear(3, 3), options={'quiet': True})
    raise SystemExit('another model was let in')
except rumor.MismatchError as error:
    assert 'tensor 1' in str(error) and '3 x 3' in str(error), error
print(json.dumps({}))
'''

DEVICE = COMMON + '''
import types
fake_gpu, = sys.argv[1:]


class Far(torch.Tensor):
    device = property(lambda self: torch.device('cuda', 0))

    def data_ptr(self):
        return super().data_ptr() ^ 1 << 62


class Model:
    def __init__(self):
        self.weight = torch.zeros(6, 4)
        self.halves = torch.zeros(5, dtype=torch.bfloat16)
        self.doubles = torch.zeros(3, dtype=torch.float64)
        self.mean = torch.zeros(2)
        self.trained = [self.weight, self.halves, self.doubles]
        self.far = [tensor.as_subclass(Far) for tensor in self.trained]
        for tensor in self.far:
            tensor.requires_grad = True

    def named_modules(self):
        return []

    def named_parameters(self):
        return zip(('weight', 'halves', 'doubles'), self.far)

    def named_buffers(self):
        yield 'mean', self.mean.as_subclass(Far)


waits = []
torch.cuda.current_stream = lambda gpu: types.SimpleNamespace(synchronize=lambda: waits.append(gpu))
for plugin in (fake_gpu, '/no/such.so'):
    os.environ['RUMOR_CUDA'] = plugin
    there = plugin == fake_gpu
    waits.clear()
    model = Model()
    with rumor.join('device', model, density=0.2, options={'quiet': True, 'overhead': 1}) as swarm:
        assert [one.gpu for one in swarm._parameters + swarm._locals] == ([0, 0, None, 0] if there else [None] * 4)
        for _ in range(300):
            with torch.no_grad():
                for tensor in model.trained:
                    tensor.add_(0.02 * (3 - tensor))
                model.mean += 1
            time.sleep(0.001)
            assert swarm.step(2)
    for tensor in model.trained:
        assert (tensor.double() - 3).abs().max().item() < 0.8, (plugin, tensor)
    assert model.mean.tolist() == [300, 300]
    assert waits == ([0] * 302 if there else []), (plugin, len(waits))
print(json.dumps({}))
'''

CALLBACKS = COMMON + '''
import types
framework = types.ModuleType('transformers')
framework.TrainerCallback = type('TrainerCallback', (), {})
lightning, pytorch = types.ModuleType('lightning'), types.ModuleType('lightning.pytorch')
pytorch.Callback = type('Callback', (), {})
lightning.pytorch = pytorch
sys.modules.update({'transformers': framework, 'lightning': lightning, 'lightning.pytorch': pytorch})


def steps(model, take, ended):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(1000):
        loss = ((model(torch.randn(4, 3)) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        take(loss)
        time.sleep(0.001)
        if ended():
            return
    raise SystemExit('the end of the run was not seen')


few = {'until_samples': 400, 'density': 0.2, 'options': {'quiet': True, 'overhead': 1}}
model = nn.Linear(3, 2)
callback = rumor.trainer_callback('hugging', **few)
assert isinstance(callback, framework.TrainerCallback)
arguments = types.SimpleNamespace(per_device_train_batch_size=2, gradient_accumulation_steps=2)
control = types.SimpleNamespace(should_training_stop=False)
callback.on_train_begin(arguments, None, control, model=model)
steps(model, lambda loss: callback.on_step_end(arguments, None, control), lambda: control.should_training_stop)
callback.on_train_end(arguments, None, control)
assert callback.swarm.status()['samples'] >= 400 and callback.swarm.status()['phase'] == 'ended'

callback = rumor.lightning_callback('lightning', batch_size=4, **few)
assert isinstance(callback, pytorch.Callback)
trainer = types.SimpleNamespace(global_step=0, should_stop=False)
callback.on_train_start(trainer, model)


def take(loss):
    callback.on_train_batch_end(trainer, model, {'loss': loss}, None, 0)  # accumulates: no step of the optimizer
    trainer.global_step += 1
    callback.on_train_batch_end(trainer, model, {'loss': loss}, None, 1)


steps(model, take, lambda: trainer.should_stop)
callback.on_train_end(trainer, model)
assert callback.swarm.status()['samples'] >= 400 and callback.swarm.status()['phase'] == 'ended'
print(json.dumps({}))
'''


class Script:
    """A Python process whose standard output is one line of JSON."""

    def __init__(self, python, text, *arguments):
        self.command = [python, '-c', text, *arguments]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        return self

    def result(self):
        out, _ = self.process.communicate(timeout=150 * peers.SLOW)
        assert self.process.returncode == 0, f'ended with {self.process.returncode}'
        return json.loads(out.splitlines()[-1])


def samples_at(address):
    status = peers.Peer.status(type('At', (), {'status_address': address}))
    return status['samples'] if status else 0


def killed(python, directory):
    ports = [f'127.0.0.1:{port}' for port in free_ports(4)]
    one = Script(python, KILLED, '0', ports[0], ports[1], ports[2], os.path.join(directory, 'a')).start()
    two = Script(python, KILLED, '1', ports[2], ports[3], ports[0], os.path.join(directory, 'b')).start()
    try:
        wait_for('6000 samples', lambda: samples_at(ports[1]) > 6000, 60, lambda: samples_at(ports[1]))
        wait_for('a checkpoint', lambda: os.path.exists(os.path.join(directory, 'b', 'checkpoint.1')))
        two.process.send_signal(signal.SIGKILL)
        two.process.communicate()
        two.start()
        ends = [one.result(), two.result()]
    finally:
        for script in (one, two):
            script.process.kill()
    print(*ends, sep='\n')
    assert ends[0]['digest'] == ends[1]['digest'] and ends[0]['weight'] == ends[1]['weight'], 'they differ'
    assert ends[0]['lost'] == ends[1]['lost'] == 0
    assert min(end['right'] for end in ends) > 0.9
    assert ends[0]['batches'] >= 1000 and ends[1]['batches'] > 1000, 'the statistics of BatchNorm did not come back'
    assert ends[0]['norm'] == ends[1]['norm'], 'the statistics of BatchNorm are not those of all peers'


def _listens(address):
    host, port = address.split(':')
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def mixed(python, directory):
    if not pathlib.Path('/usr/share/datasets/fashion-mnist').is_dir():
        print('no Fashion-MNIST here (dataset-fashion-mnist)')
        sys.exit(SKIPPED)
    samples = 96000
    # No faster than that, or the built-in peer is done before the script has made its first steps.
    with peers.Swarm(1, samples, 'exchange.period_ms=5', run_name='fashion-mlp') as swarm:
        seed = f'127.0.0.1:{free_ports(1)[0]}'
        built_in = swarm.peers[0]
        built_in.seeds = [seed]
        script = Script(python, MIXED, seed, built_in.listen, str(samples)).start()
        try:
            wait_for('the script', lambda: _listens(seed), 100)  # to load PyTorch may take longer than the run
            built_in.start()
            end = script.result()
            final = swarm.finish()[0]
        finally:
            script.process.kill()
    print(end, final['digest'], final['updates'], final['accuracy'], final['steps'], sep='\n')
    assert end['digest'] == final['digest'] and end['updates'] == final['updates']
    assert 20 < final['steps'] < final['updates'] - 20, 'only one of them has trained'
    assert abs(end['right'] - final['accuracy']) < 0.001 and end['right'] > 0.75


if __name__ == '__main__':
    peers.RUMOR, LIBRARY, PACKAGE, SCENARIO, *MORE = sys.argv[1:]
    os.environ.update(RUMOR_LIBRARY=LIBRARY, RUMOR_PACKAGE=PACKAGE, PYTHONDONTWRITEBYTECODE='1',
                      PYTHONPATH=str(pathlib.Path(__file__).resolve().parent))
    PYTHON = python_with_torch()
    with tempfile.TemporaryDirectory(prefix='rumor-torch-') as DIRECTORY:
        if SCENARIO in ('kinds', 'device', 'callbacks'):
            scripts = {'kinds': KINDS, 'device': DEVICE, 'callbacks': CALLBACKS}
            Script(PYTHON, scripts[SCENARIO], *MORE).start().result()
        else:
            {'killed': killed, 'mixed': mixed}[SCENARIO](PYTHON, DIRECTORY)
