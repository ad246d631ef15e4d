#!/usr/bin/env python3
"""Runs the code blocks of tools/tutorials/your-pytorch-model.md as they stand.

Skipped (77) without PyTorch or Fashion-MNIST.

Two scripts, one killed and started again, end with equal digests, and within half a point of the accuracy that the same
script reaches alone with twice the batch (a stand-in for the package counts its samples).

usage: tutorial_torch.py LIBRARY PACKAGE PAGE
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import peers  # noqa: E402
from torch_peers import SKIPPED, python_with_torch  # noqa: E402

ALONE = '''
class Swarm:
    samples = 0

    def __init__(self, batch_size, until_samples, **_):
        self.batch, self.until = batch_size, until_samples

    @property
    def progress(self):
        return self.samples / self.until

    def step(self, loss):
        self.samples += self.batch
        return self.samples < self.until

    def leave(self, _):
        pass

    def status(self):
        return {'digest': 'none'}


def join(run, model, **options):
    return Swarm(**options)
'''


def blocks(page):
    """Languages and texts of the code blocks, in order."""
    return re.findall(r'^```(\w+)\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)


def said(text):
    found = re.findall(r'^accuracy ([\d.]+) % digest (\w+)$', text, re.MULTILINE)
    return [(float(accuracy), digest) for accuracy, digest in found]


def main(library, package, page):
    python = python_with_torch()
    if not pathlib.Path('/usr/share/datasets/fashion-mnist').is_dir():
        print('no Fashion-MNIST here (dataset-fashion-mnist)')
        sys.exit(SKIPPED)
    parts = blocks(pathlib.Path(page).read_text(encoding='utf-8'))
    scripts = [text for language, text in parts if language == 'python']
    (where, run) = [text for language, text in parts if language == 'sh']
    assert 'RUMOR_LIBRARY' in where and 'kill -9' in run and len(scripts) == 1 and scripts[0].count('# <--') == 4
    with tempfile.TemporaryDirectory(prefix='rumor-tutorial-') as directory:
        here = pathlib.Path(directory)
        (here / 'train.py').write_text(scripts[0], encoding='utf-8')
        (here / 'alone').mkdir()
        (here / 'alone' / 'rumor.py').write_text(ALONE, encoding='utf-8')
        twice = scripts[0].replace('total, batch = 240_000, 32', 'total, batch = 240_000, 64')
        assert twice != scripts[0]
        (here / 'alone' / 'train.py').write_text(twice, encoding='utf-8')
        source = here / 'source'  # as the page has it, wherever this build is
        built = source / 'build' / 'runtime' / 'bridge'
        built.mkdir(parents=True)
        (built / 'librumor.so.1').symlink_to(library)
        (source / 'runtime' / 'bridge').mkdir(parents=True)
        (source / 'runtime' / 'bridge' / 'python').symlink_to(package)
        (here / 'bin').mkdir()
        # No link: the python of a virtual environment finds its packages by where it is.
        (here / 'bin' / 'python3').write_text(f'#!/bin/sh\nexec {shutil.which(python)} "$@"\n', encoding='utf-8')
        (here / 'bin' / 'python3').chmod(0o755)
        env = dict(os.environ, RUMOR_SOURCE=str(source), PATH=f'{here / "bin"}:{os.environ["PATH"]}',
                   PYTHONDONTWRITEBYTECODE='1')
        ran = subprocess.run(['bash', '-e', '-c', where + run], cwd=here, env=env, capture_output=True, text=True,
                             timeout=250 * peers.SLOW, check=False)
        assert ran.returncode == 0, ran.stderr[-3000:]
        print(ran.stdout)
        alone = subprocess.run([python, 'train.py', '0'], cwd=here / 'alone', env=env, capture_output=True, text=True,
                               timeout=250 * peers.SLOW, check=True).stdout
        print('alone, twice the batch:', alone)
    (first, second), (reference,) = said(ran.stdout), said(alone)
    assert first == second, 'the two have different weights'
    assert first[0] > reference[0] - 0.5, f'{first[0]} % is more than half a point below {reference[0]} %'


if __name__ == '__main__':
    main(*map(os.path.abspath, sys.argv[1:]))
