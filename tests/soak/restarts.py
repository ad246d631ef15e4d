#!/usr/bin/env python3
"""Lightning's ckpt_path and Hugging Face's resume_from_checkpoint with weights='swarm', in the frameworks themselves.

usage: restarts.py LIBRARY PACKAGE [FRAMEWORK]...     lightning, transformers; by a python3 that has them

A first peer trains all the time. A second one, whose loop the framework runs, writes the framework's checkpoints and is
killed. The first goes on; then the second starts again from the framework's checkpoint, with the swarm's weights, once
by the first peer's address and once by its own state directory alone. Asserted: it begins with the weights that the
swarm has by then, not with those of the file; its steps and its optimizer go on where the file has them; both peers end
with equal digests. Prints what was seen as JSON, then `ok`.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import usage

usage.check(__doc__, 2)
usage.needs('torch')

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'system'))
from peers import free_ports, wait_for  # noqa: E402

MODEL = '''
import json, os, signal, sys, time
sys.path.insert(0, os.environ['RUMOR_PACKAGE'])
import torch, rumor
torch.set_num_threads(1)
torch.manual_seed(int(os.environ['SEED']))
RUN, FAST = 'restarts', {'quiet': True, 'overhead': 1, 'checkpoint_seconds': 0.5}


def gpt():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0,
                                      embd_pdrop=0, attn_pdrop=0))


def linear():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


class Plain(torch.nn.Module):
    """Parameters with the names that the LightningModule below gives them."""
    def __init__(self):
        super().__init__()
        self.net = linear()

    def forward(self, x):
        return self.net(x)


def flat(model):
    return torch.cat([one.detach().flatten() for one in model.parameters() if one.requires_grad])


def say(**what):
    print(json.dumps(what), flush=True)
'''

FIRST = MODEL + '''
listen, which = sys.argv[1:]
model = {'transformers': gpt, 'lightning': Plain}[which]()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
swarm = rumor.join(RUN, model, listen=listen, density=0.2, options=FAST)
say(joined=True)
ending = []
signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
while not ending:
    if which == 'lightning':
        x = torch.randn(16, 8)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    else:
        rows = (torch.arange(16) + torch.randint(0, 16, (16, 1)))
        loss = model(input_ids=rows, labels=rows).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    swarm.step(loss=loss)
    time.sleep(0.002)
swarm.leave(120)
say(digest=swarm.status()['digest'])
'''

COMMON = MODEL + '''
folder, seeds, state, resume, steps = sys.argv[1:]
PEER = dict(weights='swarm', seeds=[seeds] if seeds else [], state=state or None, density=0.2, options=FAST)


def begun(callback, model, step, optimizer):
    """What the framework's loop begins with, after join()."""
    with callback.swarm.shared_weights():
        torch.save(flat(model), f'{folder}/begun.pt')
    moments = [one['step'] for one in optimizer.state.values() if 'step' in one]
    say(begun=step, optimizer=int(moments[0]) if moments else 0, samples=callback.swarm.status()['samples'])
'''

LIGHTNING = COMMON + '''
import lightning
from lightning.pytorch.callbacks import ModelCheckpoint


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = linear()

    def training_step(self, batch, _):
        x, y = batch
        time.sleep(0.002)
        return ((self.net(x) - y) ** 2).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


class Look(lightning.pytorch.Callback):
    def on_train_start(self, trainer, module):
        begun(callback, module, trainer.global_step, trainer.optimizers[0])


model, x = Model(), torch.randn(4096, 8)
callback = rumor.lightning_callback(RUN, **PEER)
files = ModelCheckpoint(folder, filename='{step}', every_n_train_steps=50, save_top_k=-1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), 16, shuffle=True)
trainer = lightning.Trainer(max_steps=int(steps), max_epochs=-1, callbacks=[callback, Look(), files], logger=False,
                            accelerator='cpu', enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, data, ckpt_path=resume or None)
say(digest=callback.swarm.status()['digest'], steps=trainer.global_step)
'''

TRANSFORMERS = COMMON + '''
from transformers import Trainer, TrainerCallback, TrainingArguments


class Look(TrainerCallback):
    def on_train_begin(self, args, state, control, model=None, optimizer=None, **_):
        begun(callback, model, state.global_step, getattr(optimizer, 'optimizer', optimizer))

    def on_step_end(self, args, state, control, **_):
        time.sleep(0.002)


counted = torch.arange(16).repeat(2048, 1) + torch.randint(0, 16, (2048, 1))
rows = [{'input_ids': row, 'labels': row} for row in counted]
model = gpt()
callback = rumor.trainer_callback(RUN, **PEER)
trainer = Trainer(model, TrainingArguments(folder, per_device_train_batch_size=16, max_steps=int(steps), use_cpu=True,
                                           learning_rate=1e-3, report_to=[], save_steps=50, disable_tqdm=True),
                  train_dataset=rows, callbacks=[callback, Look()])
trainer.train(resume_from_checkpoint=resume or None)
say(digest=callback.swarm.status()['digest'], steps=trainer.state.global_step)
'''

# Script, the framework's checkpoints in a folder, what of such a file has the weights.
FRAMEWORKS = {
    'lightning': (LIGHTNING, '*.ckpt', '''
import sys, torch
torch.save(torch.cat([one.flatten() for one in torch.load(sys.argv[1], weights_only=False)['state_dict'].values()]),
           sys.argv[2])'''),
    'transformers': (TRANSFORMERS, 'checkpoint-*', MODEL + '''
from transformers import GPT2LMHeadModel
torch.save(flat(GPT2LMHeadModel.from_pretrained(sys.argv[1])), sys.argv[2])'''),
}


class Peer:
    all = []

    def __init__(self, script, *arguments, seed):
        env = dict(os.environ, SEED=str(seed))
        self.process = subprocess.Popen([sys.executable, '-c', script, *map(str, arguments)], stdout=subprocess.PIPE,
                                        text=True, env=env)
        Peer.all.append(self.process)

    def told(self, key):
        """The next line that tells `key`."""
        for line in self.process.stdout:
            if line.startswith('{"') and key in (said := json.loads(line)):
                return said
        raise AssertionError(f'ended without telling {key}: exit status {self.process.wait()}')

    def end(self, how):
        self.process.send_signal(how)


def newest(folder, pattern):
    """The checkpoint with the most steps that is complete, or None."""
    found = sorted(folder.glob(pattern), key=lambda path: int(''.join(filter(str.isdigit, path.name))))
    return found[-2] if len(found) > 1 else None


def distances(python_code, checkpoint, folder):
    """How far the weights of the file are from those that training began with, in the greatest weight."""
    subprocess.run([sys.executable, '-c', python_code, checkpoint, folder / 'file.pt'], check=True,
                   env=dict(os.environ, SEED='0'))
    compare = 'import sys, torch\na, b = map(torch.load, sys.argv[1:])\nprint((a - b).abs().max().item())'
    return float(subprocess.run([sys.executable, '-c', compare, folder / 'file.pt', folder / 'begun.pt'], check=True,
                                capture_output=True, text=True).stdout)


def try_framework(which, folder):
    script, pattern, weights_of = FRAMEWORKS[which]
    listen, = (f'127.0.0.1:{port}' for port in free_ports(1))
    first = Peer(FIRST, listen, which, seed=1)
    first.told('joined')
    files, state = folder / 'files', folder / 'state'
    files.mkdir()
    second = Peer(script, files, listen, state, '', 1_000_000, seed=2)  # other weights than the first
    assert second.told('begun')['begun'] == 0
    wait_for('a checkpoint of the framework', lambda: newest(files, pattern), 240)
    wait_for('a checkpoint of the peer', (state / 'checkpoint.1').exists, 60)
    second.end(signal.SIGKILL)
    second.process.wait()
    checkpoint = newest(files, pattern)
    at = int(''.join(filter(str.isdigit, checkpoint.name)))
    alone = Peer(script, files, '', state, checkpoint, at + 20, seed=3)  # by the state directory, without seeds
    told = [alone.told('begun')]
    alone.told('digest')
    again = Peer(script, files, listen, '', checkpoint, at + 200, seed=4)
    told.append(again.told('begun'))
    first.end(signal.SIGTERM)  # it waits for the other
    ends = [again.told('digest'), first.told('digest')]
    far = distances(weights_of, checkpoint, files)
    assert [one['begun'] for one in told] == [at, at] == [one['optimizer'] for one in told], (at, told)
    assert min(one['samples'] for one in told) > 0, told  # swarm.progress is the run's from the first step
    assert far > 0, 'the swarm went on, so the weights of the file are not those that the restart begins with'
    assert ends[0]['digest'] == ends[1]['digest'] and ends[0]['steps'] == at + 200, ends
    return {'step': at, 'file_from_swarm': far, **{f'begun_{name}': one['samples'] for name, one in
                                                  zip(('state', 'seeds'), told)}}


def main(library, package, *frameworks):
    os.environ.update(RUMOR_LIBRARY=os.path.abspath(library), RUMOR_PACKAGE=os.path.abspath(package),
                      PYTHONDONTWRITEBYTECODE='1')
    try:
        for which in frameworks or FRAMEWORKS:
            with tempfile.TemporaryDirectory(prefix='rumor-restarts-', ignore_cleanup_errors=True) as folder:
                print(json.dumps({which: try_framework(which, pathlib.Path(folder))}), flush=True)
    finally:
        for process in Peer.all:
            process.kill()
    print('ok')


if __name__ == '__main__':
    main(*sys.argv[1:])
