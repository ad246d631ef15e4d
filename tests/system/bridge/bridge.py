#!/usr/bin/env python3
"""librumor in real processes, through the Python package but without PyTorch.

usage: bridge.py LIBRARY PACKAGE SCENARIO
  killed   three peers on loopback, one killed (SIGKILL) and started again: equal digests, the target is met
  refused  one that begins with other weights is told what is wrong, and the run goes on
  embedded the library leaves signals, stdout, forked children and symbols of its host alone
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import peers  # noqa: E402
from peers import free_ports, wait_for  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


class Loop:
    """One process of bridge_peer.py."""

    def __init__(self, package, directory, number, ports, samples, **more):
        self.log = open(os.path.join(directory, f'log-{number}'), 'a', encoding='utf-8')
        self.package = package
        self.told = {'number': number, 'port': ports[2 * number], 'status': ports[2 * number + 1], 'samples': samples,
                     'seeds': [f'127.0.0.1:{port}' for k, port in enumerate(ports[::2]) if k != number],
                     'state': os.path.join(directory, f'state-{number}'), **more}
        self.status_address = f'127.0.0.1:{ports[2 * number + 1]}'
        self.process = None

    def start(self, **more):
        arguments = [sys.executable, str(HERE / 'bridge_peer.py'), self.package, json.dumps({**self.told, **more})]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=self.log, text=True)
        return self

    def result(self):
        out, _ = self.process.communicate(timeout=90 * peers.SLOW)
        assert self.process.returncode == 0, f'ended with {self.process.returncode}'
        return json.loads(out)

    def samples(self):
        status = peers.Peer.status(self)
        return status['samples'] if status else 0

    def has_checkpoint(self):
        return os.path.exists(os.path.join(self.told['state'], 'checkpoint.1'))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def run(package, count, samples, **more):
    directory = tempfile.mkdtemp(prefix='rumor-bridge-')
    ports = free_ports(2 * count)
    return directory, [Loop(package, directory, number, ports, samples, **more) for number in range(count)]


def killed(package):
    directory, loops = run(package, 3, 2000)
    try:
        for loop in loops:
            loop.start(count=1_000_000)
        wait_for('600 samples', lambda: loops[0].samples() > 600)
        wait_for('a checkpoint', loops[1].has_checkpoint)
        loops[1].kill()
        wait_for('1000 samples', lambda: loops[0].samples() > 1000)
        loops[1].start()
        ends = [loop.result() for loop in loops]
        late = loops[1].start().result()
    finally:
        end_all(directory, loops)
    print(*ends, sep='\n')
    assert len({end['digest'] for end in ends}) == 1, 'digests differ'
    assert len({end['updates'] for end in ends}) == 1
    assert late['digest'] == ends[0]['digest'] and late['error'] < 0.1, 'who comes when all is over gets other weights'
    for end in ends:
        assert end['lost'] == 0 and end['samples'] >= 2000
        assert end['error'] < 0.1, 'the target is not met'
        assert end['threshold'] > 0, 'the status does not know how updates are made'
    assert ends[1]['count'] > 1_000_000, 'the checkpoint did not bring back what was local'


def refused(package):
    directory, loops = run(package, 2, 3000)
    stranger = loops[1]
    try:
        loops[0].start()
        wait_for('100 samples', lambda: loops[0].samples() > 100)
        stranger.start(first=0.25)
        why = stranger.result()['refused']
        end = loops[0].result()
    finally:
        end_all(directory, loops)
    print(why)
    assert 'the initial weights' in why and 'manual_seed' in why
    assert end['samples'] >= 3000


def end_all(directory, loops):
    for loop in loops:
        if loop.process and loop.process.poll() is None:
            loop.kill()
        loop.log.close()
        if sys.exc_info()[0]:
            print(f'---- {loop.log.name}:\n{pathlib.Path(loop.log.name).read_text(encoding="utf-8")[-2000:]}')
    subprocess.run(['rm', '-r', directory], check=True)


EMBEDDED = '''
import array, os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
from rumor import RumorError
from rumor.peer import Peer


def handled():
    """Signals that are caught or ignored, but for the two that the C library keeps for its threads."""
    status = open('/proc/self/status').read()
    return [int(status.split(word)[1].split()[0], 16) & 0x7fff_ffff for word in ('SigCgt:', 'SigIgn:')]


before = handled()
weights = array.array('f', [0.0] * 100)
peer = Peer('embedded')
peer.option('quiet', 1)
peer.parameter('w', [100], weights.buffer_info()[0])
assert peer.start(10)
assert before == handled(), 'a handler was installed'
try:
    os.kill(os.getpid(), signal.SIGINT)
    raise SystemExit('SIGINT was swallowed')
except KeyboardInterrupt:
    pass
child = os.fork()
if child == 0:
    try:
        peer.step(1)
    except RumorError as error:
        os._exit(0 if error.code == 22 else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0, 'the child was not told'
weights[3] = 1.0
assert peer.step(1)
# The end of the process ends the peer, without leave().
'''


def embedded(package, library):
    ran = subprocess.run([sys.executable, '-c', EMBEDDED, package], capture_output=True, text=True, check=False,
                         timeout=60 * peers.SLOW)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == '', ran.stdout
    listing = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in listing.splitlines()]
    assert names and all(name.startswith('rumor_') for name in names), names
    gone = dict(os.environ, RUMOR_LIBRARY='/no/such/librumor.so.1')
    ran = subprocess.run([sys.executable, '-c', EMBEDDED, package], capture_output=True, text=True, check=False,
                         env=gone)
    assert 'set RUMOR_LIBRARY' in ran.stderr, ran.stderr


if __name__ == '__main__':
    LIBRARY, PACKAGE, SCENARIO = sys.argv[1:]
    os.environ['RUMOR_LIBRARY'] = LIBRARY
    if SCENARIO == 'embedded':
        embedded(PACKAGE, LIBRARY)
    else:
        {'killed': killed, 'refused': refused}[SCENARIO](PACKAGE)
