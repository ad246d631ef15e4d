"""What a script can see of its peer: messages, events, figures, and what it has learned and not sent."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

import rumor
import torch
from torch import nn

from torch_case import FAST, free_port, train


def _batch():
    inputs = torch.randn(16, 8)
    return inputs, inputs[:, :2]


class _Watcher:
    def __init__(self):
        self.seen, self.threads = [], set()

    def on_event(self, event):
        self.seen.append(event['kind'])
        self.threads.add(threading.current_thread())

    def on_left(self, event):
        self.seen.append('gone ' + event['node_id'])

    def on_lost(self, event):
        assert event['node_id'] and 'without a goodbye' in event['text'], event


QUIET = '''
import os, sys
sys.path.insert(0, os.environ['RUMOR_PACKAGE'])
import torch, rumor
model = torch.nn.Linear(2, 2)
with rumor.join('quiet', model) as swarm:
    swarm.step()
'''


KILLED = '''
import os, sys, time
sys.path.insert(0, os.environ['RUMOR_PACKAGE'])
import torch, rumor
model = torch.nn.Linear(8, 2)
swarm = rumor.join('killed', model, seeds=sys.argv[1], weights='swarm', options={'overhead': 1})
while True:
    with torch.no_grad():
        model.weight.add_(0.01 * torch.randn(2, 8))
    swarm.step()
    time.sleep(0.01)
'''


INTERRUPTED = '''
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test that runs in the background has it ignored
sys.path.insert(0, os.environ['RUMOR_PACKAGE'])
import torch, rumor
how, port = sys.argv[1:]
try:
    if how == 'no seed':
        print('waits', flush=True)
        rumor.join('waits', torch.nn.Linear(8, 2), seeds=port, weights='swarm', wait=60)
    else:
        swarm = rumor.join('waits', torch.nn.Linear(8, 2), seeds=port, weights='swarm', state=how)
        swarm.step()
        print('waits', flush=True)
        swarm.leave(60)
except KeyboardInterrupt:
    print('interrupted', swarm.status()['phase'] if how != 'no seed' else '')
'''


def messages_go_to_logging():
    said = subprocess.run([sys.executable, '-c', QUIET], capture_output=True, text=True, check=True)
    assert said.stdout == '' and said.stderr == '', said
    loud = QUIET.replace('model =', "import logging; logging.basicConfig(level='INFO'); model =")
    said = subprocess.run([sys.executable, '-c', loud], capture_output=True, text=True, check=True).stderr
    assert 'INFO:rumor:listening on 127.0.0.1' in said and 'others join with seeds' in said, said
    assert 'no state directory' in said and 'INFO:rumor:ended with' in said and '--' not in said, said


def leave_works_at_the_end_of_the_interpreter():
    text = QUIET.replace("with rumor.join('quiet', model) as swarm:\n    swarm.step()", '''
swarm = rumor.join('quiet', model)
swarm.step()
import atexit
atexit.register(lambda: (swarm.leave(0.1), print(swarm.status()['phase'])))
''')
    said = subprocess.run([sys.executable, '-c', text], capture_output=True, text=True, check=True)
    assert said.stdout == 'ended\n' and said.stderr == '', said


def a_schedule_follows_the_run():
    """Two peers see 800 samples together; the second joins late, and has the first one's rate from then on."""
    port = f'127.0.0.1:{free_port()}'
    told = {'until_samples': 800, 'batch_size': 4, 'options': FAST}
    model, late = nn.Linear(8, 2), nn.Linear(8, 2)
    first = rumor.join('schedule', model, listen=port, **told)
    optimizers = [torch.optim.SGD(one.parameters(), 0.5) for one in (model, late)]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizers[0], lambda _: 1 - first.progress)
    before = []
    for _ in range(60):
        train(model, optimizers[0], _batch, 1, first, pause=0.01)
        schedule.step()
        before.append(optimizers[0].param_groups[0]['lr'])
    assert before[0] > 0.4 and before == sorted(before, reverse=True) and 0.2 < before[-1] < 0.48, before
    second = rumor.join('schedule', late, seeds=port, weights='swarm', **told)
    late_schedule = torch.optim.lr_scheduler.LambdaLR(optimizers[1], lambda _: 1 - second.progress)
    for _ in range(40):  # the count of samples is looked at four times a second
        train(late, optimizers[1], _batch, 1, second, pause=0.01)
        late_schedule.step()
    assert optimizers[1].param_groups[0]['lr'] < before[-1] + 0.05, (before[-1], optimizers[1].param_groups[0]['lr'])
    while first.step() and second.step():
        time.sleep(0.01)
    first.leave(0.5)
    second.leave(0.5)
    time.sleep(0.3)
    assert (first.progress, second.progress) == (1.0, 1.0), (first.progress, second.progress)
    endless = rumor.join('endless', nn.Linear(8, 2), options=FAST)
    try:
        endless.progress
    except ValueError as error:
        assert 'until_samples' in str(error), error
    else:
        raise AssertionError('a run without an end has a progress')
    endless.close()


def peers_that_come_and_go_are_told():
    port = f'127.0.0.1:{free_port()}'
    model, other = nn.Linear(8, 2), nn.Linear(8, 2)
    watcher = _Watcher()
    first = rumor.join('events', model, listen=port, callbacks=[watcher], options=FAST)
    second = rumor.join('events', other, seeds=port, weights='swarm', options=FAST)
    optimizer, second_optimizer = (torch.optim.SGD(one.parameters(), 0.01) for one in (model, other))
    for _ in range(60):
        train(model, optimizer, _batch, 1, first, pause=0.01)
        train(other, second_optimizer, _batch, 1, second, pause=0.01)
    numbers = sorted((first.number, second.number))
    assert (first.count, second.count, numbers) == (2, 2, [0, 1]), (first.count, second.count, numbers)
    figures = first.metrics()
    assert figures['samples'] > 30 and figures['traffic.sent_bytes'] > 1000, figures
    assert all(isinstance(value, float) for value in figures.values())
    name = second.status()['node_id']
    second.leave_in_background(0.5).result(20)
    for _ in range(100):
        train(model, optimizer, _batch, 1, first, pause=0.02)
        if f'gone {name}' in watcher.seen:
            break
    first.leave(0.5)
    assert f'gone {name}' in watcher.seen, watcher.seen
    assert {'joined', 'left', 'phase', 'log'} <= set(watcher.seen), watcher.seen
    assert watcher.threads == {threading.current_thread()}


def a_peer_that_is_killed_is_lost():
    port = f'127.0.0.1:{free_port()}'
    model, watcher = nn.Linear(8, 2), _Watcher()
    swarm = rumor.join('killed', model, listen=port, callbacks=[watcher], options=FAST)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    other = subprocess.Popen([sys.executable, '-c', KILLED, port])
    try:
        for end in ('joined', 'lost'):
            for _ in range(1500):
                train(model, optimizer, _batch, 1, swarm, pause=0.02)
                if end in watcher.seen:
                    break
            assert end in watcher.seen and 'left' not in watcher.seen, (end, watcher.seen)
            other.kill()
    finally:
        other.kill()
        other.wait()
    swarm.leave(0.2)


def ctrl_c_ends_a_wait_for_others(folder):
    port = f'127.0.0.1:{free_port()}'
    for how in ('no seed', folder):
        stays = rumor.join('waits', nn.Linear(8, 2), listen=port, options=FAST) if how == folder else None
        waits = subprocess.Popen([sys.executable, '-c', INTERRUPTED, how, port], stdout=subprocess.PIPE, text=True)
        assert waits.stdout.readline() == 'waits\n'
        for _ in range(20):  # `stays` goes on, so the other waits for it
            time.sleep(0.05)
            if stays:
                stays.step()
        assert waits.poll() is None, how
        waits.send_signal(signal.SIGINT)
        said = waits.communicate(timeout=20)[0]
        assert said == ('interrupted ended\n' if stays else 'interrupted \n'), (how, said)
        assert stays is None or any('checkpoint' in name for name in os.listdir(folder)), os.listdir(folder)
    stays.leave(0.2)


def a_short_run_sends_more_a_step():
    for told, density in (({}, 0.001), ({'until_samples': 10_000}, 0.0025), ({'until_samples': 200}, 0.1),
                          ({'until_samples': 10 ** 9}, 0.001), ({'until_samples': 400, 'density': 0.02}, 0.02),
                          ({'options': {'steps': 500}}, 0.05),
                          ({'options': {'steps': 500, 'compress.density': 0.02}}, 0.02)):
        swarm = rumor.join('short', nn.Linear(8, 2), batch_size=1, **told)
        assert swarm.status()['compression']['target_density'] == density, (told, swarm.status()['compression'])
        swarm.close()


def what_is_not_sent_yet_goes_into_a_checkpoint_of_ones_own():
    port = f'127.0.0.1:{free_port()}'
    model, other = nn.Linear(8, 2), nn.Linear(8, 2)
    stays = rumor.join('resumed', other, listen=port, options=FAST)
    swarm = rumor.join('resumed', model, seeds=port, weights='swarm', options={**FAST, 'compress.density': 0.06})
    train(model, torch.optim.SGD(model.parameters(), 0.05), _batch, 100, swarm)
    saved = swarm.state_dict()
    learned = model.weight.detach().clone()
    assert any(part.abs().max() > 1e-3 for part in saved.values()), saved
    swarm.close()
    again = nn.Linear(8, 2)
    swarm = rumor.join('resumed', again, seeds=port, weights='swarm', options=FAST)
    before = (again.weight - learned).abs().max().item()
    swarm.load_state_dict(saved)
    after = (again.weight - learned).abs().max().item()
    assert after < 1e-5 < 1e-3 < before, (before, after)
    swarm.leave(0.2)
    stays.leave(0.2)


def a_forked_child_lets_go_of_the_address():
    port, children = f'127.0.0.1:{free_port()}', []
    try:
        for _ in range(2):  # the second join() has the child of the first beside it
            swarm = rumor.join('forks', nn.Linear(8, 2), listen=port, options=FAST)
            children.append(os.fork())
            if children[-1] == 0:
                signal.pause()
            swarm.leave(0.1)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def an_export_has_the_buffers_too(folder):
    def model():
        return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
    torch.manual_seed(1)
    trained = model()
    swarm = rumor.join('buffers', trained, state=folder, options=FAST)
    train(trained, torch.optim.SGD(trained.parameters(), 0.05), _batch, 60, swarm)
    swarm.leave(0.2)
    path = folder + '/model.safetensors'
    subprocess.run([os.environ['RUMOR'], 'export', folder, '--to', path], check=True, capture_output=True)
    with open(path, 'rb') as file:
        content = file.read()
    size = int.from_bytes(content[:8], 'little')
    types = {'F32': torch.float32, 'I64': torch.int64}
    loaded = {}
    for name, one in json.loads(content[8:8 + size]).items():
        if name != '__metadata__':
            begin, end = (8 + size + place for place in one['data_offsets'])
            loaded[name] = torch.frombuffer(bytearray(content[begin:end]), dtype=types[one['dtype']]).view(one['shape'])
    again = model()
    again.load_state_dict(loaded)  # strictly
    assert again[1].num_batches_tracked == 60 and not torch.equal(again[1].running_mean, torch.zeros(6))
    inputs = torch.randn(5, 8)
    assert torch.equal(again.eval()(inputs), trained.eval()(inputs))
