#!/usr/bin/env python3
"""64-bit ARM beside this machine: simulations with equal traces, and a peer of each kind in one run.

usage: aarch64.py RUMOR BUILD      (BUILD: what `tools/wheel --aarch64` makes, build-aarch64; needs qemu-user)

qemu is slow, so the runs are small. Prints what was equal, then `ok`.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import usage

usage.check(__doc__, 2)

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'system'))
from peers import free_ports  # noqa: E402

RUNS = (
    ['synthetic', '--nodes', '4', '--sim-seed', '42', '--set', 'run.samples=4000'],
    ['synthetic', '--nodes', '8', '--faults', 'light', '--sim-seed', '7', '--set', 'run.samples=4000'],
    ['fashion-mlp', '--nodes', '4', '--sim-seed', '3', '--set', 'run.samples=4000', '--set', 'model.hidden=[16]'],
    ['--protocol-only', '--nodes', '8', '--sim-seed', '1'],
)


def trace(command, run, folder):
    path = os.path.join(folder, 'run.json')
    subprocess.run([*command, 'sim', *run, '--json', path], check=True, capture_output=True, timeout=900)
    with open(path, encoding='utf-8') as file:
        told = json.load(file)
    assert not told.get('stopped_early'), told
    return told['trace_hash']


def peers(commands, folder):
    """The digests of one peer of each kind at the end of their run."""
    ports, processes = free_ports(2), []
    for me, command in enumerate(commands):
        processes.append(subprocess.Popen(
            [*command, 'peer', 'synthetic', '--listen', f'127.0.0.1:{ports[me]}', '--seed',
             f'127.0.0.1:{ports[1 - me]}', '--set', 'run.samples=60000', '--until-done', '--quiet', '--json',
             os.path.join(folder, str(me))], stderr=subprocess.PIPE, text=True))
    said = [process.communicate(timeout=600)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0] and 'linked to' in said[0], said
    told = [json.loads(pathlib.Path(folder, str(me)).read_text(encoding='utf-8')) for me in (0, 1)]
    assert min(one['steps'] for one in told) > 100, told  # both have trained
    return [one['digest'] for one in told]


def main():
    commands = [sys.argv[1]], ['qemu-aarch64', os.path.join(sys.argv[2], 'tools', 'rumor')]
    if not shutil.which('qemu-aarch64'):
        sys.exit('qemu-aarch64 is missing: apt install qemu-user')
    with tempfile.TemporaryDirectory(prefix='rumor-aarch64-') as folder:
        for run in RUNS:
            here, there = (trace(command, run, folder) for command in commands)
            assert here == there, (run, here, there)
            print(f'{here}  {" ".join(run)}', flush=True)
        here, there = peers(commands, folder)
        assert here == there, (here, there)
        print(f'{here}  a peer of each kind')
    print('ok')


if __name__ == '__main__':
    main()
