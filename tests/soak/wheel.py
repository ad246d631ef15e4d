#!/usr/bin/env python3
"""A wheel in a fresh virtual environment: the command, the library, and two peers from it that end alike.

usage: wheel.py [PYTHON [WHEEL]]     (PYTHON, by default this one, has PyTorch among its own packages, not those of a
virtual environment)

Without WHEEL, tools/wheel makes one, which needs PyPI and takes a minute, or three with a build. With WHEEL nothing is
compiled: so a wheel of the oldest system is tried on others. Prints one JSON object, then `ok`.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import usage

usage.check(__doc__, 0)

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / 'tests' / 'system'))
from peers import free_ports  # noqa: E402

PEER = '''
import json, sys, time
import torch, rumor
from torch import nn
torch.manual_seed(1)
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.05)
swarm = rumor.join('wheel', model, listen=sys.argv[1], seeds=sys.argv[2], density=0.1, until_samples=4000, batch_size=8,
                   options={'quiet': True, 'overhead': 1})
torch.manual_seed(int(sys.argv[3]))
going = True
while going:
    inputs = torch.randn(8, 16)
    loss = ((model(inputs) - inputs[:, :4]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    going = swarm.step(loss=loss)
    time.sleep(0.001)
swarm.leave(20)
print(json.dumps({'digest': swarm.status()['digest'], 'loss': loss.item(), 'from': rumor.__file__}))
'''


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, **more)
    assert done.returncode == 0, (command, done.stdout[-1000:], done.stderr[-2000:])
    return done.stdout


def main():
    python, made = [*sys.argv[1:], *[sys.executable, None][len(sys.argv) - 1:]]
    environment = {name: value for name, value in os.environ.items() if name not in ('PYTHONPATH', 'RUMOR_LIBRARY')}
    with tempfile.TemporaryDirectory(prefix='rumor-wheel-') as folder:
        if made is None:
            run(SOURCE / 'tools' / 'wheel', folder, cwd=SOURCE)
        wheel, = [pathlib.Path(made)] if made else pathlib.Path(folder).glob('rumor-*.whl')
        assert 'manylinux' in wheel.name, wheel.name
        venv = os.path.join(folder, 'venv')
        run(python, '-m', 'venv', '--system-site-packages', venv)
        run(os.path.join(venv, 'bin', 'pip'), 'install', '--no-index', wheel)
        inside = os.path.join(venv, 'bin', 'python')
        version = run(os.path.join(venv, 'bin', 'rumor'), '--version', env=environment)
        assert version == run(inside, '-m', 'rumor', '--version', cwd=folder, env=environment), version
        run(inside, '-m', 'rumor', 'sim', 'synthetic', '--set', 'run.samples=2000', cwd=folder, env=environment)
        addresses = [f'127.0.0.1:{port}' for port in free_ports(2)]
        both = [subprocess.Popen([inside, '-c', PEER, addresses[me], addresses[1 - me], str(me)], env=environment,
                                 cwd=folder, stdout=subprocess.PIPE, text=True) for me in range(2)]
        ends = [json.loads(one.communicate(timeout=300)[0].splitlines()[-1]) for one in both]
        assert all(end['from'].startswith(venv) for end in ends), ends
        assert ends[0]['digest'] == ends[1]['digest'], ends
        print(json.dumps({'wheel': wheel.name, 'mib': round(wheel.stat().st_size / 2 ** 20, 1),
                          'version': version.strip(), 'losses': [end['loss'] for end in ends]}))
    print('ok')


if __name__ == '__main__':
    main()
