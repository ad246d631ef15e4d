#!/usr/bin/env python3
"""Rumor with the programs of others as they are today: from the package index, in a fresh virtual environment.

PyTorch runs the tests of the package and the tutorial; Lightning and Transformers each train a model with their own
loop and the callback; TensorBoard reads the event file of a peer; Grafana's own library reads the dashboard.

usage: others.py BUILD [OPTION of pip install]...     such as --index-url URL; some gigabytes are fetched
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import usage

usage.check(__doc__, 1)

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ['torch', 'lightning', 'transformers', 'accelerate', 'tensorboard', 'grafana-foundation-sdk']

LIGHTNING = '''
import lightning, torch, rumor


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, _):
        x, y = batch
        return ((self.layer(x) - y) ** 2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


torch.manual_seed(1)
model, x = Model(), torch.randn(4096, 8)
y = x.sum(1, keepdim=True)
callback = rumor.lightning_callback('others', batch_size=16, until_samples=6400, density=0.2,
                                    options={'quiet': True, 'overhead': 1})
lightning.Trainer(max_epochs=100, callbacks=[callback], logger=False, enable_checkpointing=False, accelerator='cpu',
                  enable_progress_bar=False).fit(model, torch.utils.data.DataLoader(
                      torch.utils.data.TensorDataset(x, y), 16, shuffle=True))
seen, loss = callback.swarm.status()['samples'], ((model.layer(x) - y) ** 2).mean().item()
assert 6400 <= seen < 7000 and loss < 0.1, (seen, loss)
'''

TRANSFORMERS = '''
import torch, rumor
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(1)
model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2))
counted = torch.arange(16).repeat(2048, 1) + torch.randint(0, 16, (2048, 1))
rows = [{'input_ids': row, 'labels': row} for row in counted]
callback = rumor.trainer_callback('others', until_samples=3200, density=0.2, options={'quiet': True, 'overhead': 1})
result = Trainer(model, TrainingArguments('unused', per_device_train_batch_size=16, num_train_epochs=100, use_cpu=True,
                                          learning_rate=1e-2, report_to=[], save_strategy='no', disable_tqdm=True),
                 train_dataset=rows, callbacks=[callback]).train()
seen = callback.swarm.status()['samples']
assert 3200 <= seen < 3600 and result.training_loss < 3, (seen, result)
'''

TENSORBOARD = '''
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
curve = [(event.step, event.value) for event in events.Scalars('test/accuracy')]
assert len(curve) >= 2 and curve[-1][0] >= 20000 and curve[-1][1] > curve[0][1], curve
'''

GRAFANA = '''
import json, sys
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

register_default_plugins()
dashboard = Dashboard.from_json(json.load(open(sys.argv[1], encoding='utf-8')))
kinds = {type(query).__module__ for panel in dashboard.panels for query in panel.targets or []}
assert len(dashboard.panels) > 10 and kinds == {'grafana_foundation_sdk.models.prometheus'}, kinds
'''


def run(what, *command, **more):
    print(f'{what} ...', flush=True)
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    if done.returncode != 0:
        sys.exit(f'{done.stdout[-4000:]}\n{what}: exit status {done.returncode}')


def main(build, *pip_options):
    build = pathlib.Path(build).resolve()
    rumor, library = build / 'tools/rumor', build / 'runtime/bridge/librumor.so.1'
    package, system = SOURCE / 'runtime/bridge/python', SOURCE / 'tests/system/bridge'
    run('a build', 'ninja', '-C', build, 'tools/rumor', 'runtime/bridge/librumor.so.1')
    with tempfile.TemporaryDirectory(prefix='rumor-others-') as folder:
        python = pathlib.Path(folder) / 'venv/bin/python'
        run('a virtual environment', sys.executable, '-m', 'venv', python.parents[1])
        run('packages', python, '-m', 'pip', 'install', '-q', *pip_options, *PACKAGES)
        env = dict(os.environ, PYTHONPATH=str(package), RUMOR_LIBRARY=str(library), PYTHONDONTWRITEBYTECODE='1')
        for scenario in ('killed', 'mixed', 'kinds', 'callbacks'):
            run(f'PyTorch: {scenario}', python, system / 'torch_peers.py', rumor, library, package, scenario)
        for cases in ('silent', 'joining', 'optimizers', 'looking', 'buffers'):
            run(f'PyTorch: cases of {cases}', python, system / 'torch_cases.py', rumor, library, package,
                f'torch_{cases}')
        run('PyTorch: the tutorial', python, system / 'tutorial_torch.py', library, package,
            SOURCE / 'tools/tutorials/your-pytorch-model.md')
        run('Lightning', python, '-c', LIGHTNING, cwd=folder, env=env)
        run('Transformers', python, '-c', TRANSFORMERS, cwd=folder, env=env)
        run('their checkpoints', python, SOURCE / 'tests/soak/restarts.py', library, package)
        run('a peer', rumor, 'peer', 'synthetic', '--set', 'run.samples=20000', '--until-done', '--quiet',
            '--tensorboard', pathlib.Path(folder) / 'events')
        run('TensorBoard', python, '-c', TENSORBOARD, pathlib.Path(folder) / 'events')
        run('Grafana', python, '-c', GRAFANA, SOURCE / 'tools/observe/grafana.json')
        listed = subprocess.run([python, '-m', 'pip', 'list', '--format=freeze'], capture_output=True, text=True,
                                check=True).stdout.split()
    print('ok with', *(line for line in listed if line.split('==')[0].replace('_', '-') in PACKAGES))


if __name__ == '__main__':
    main(*sys.argv[1:])
