"""Real `rumor peer` processes for the system tests: started, watched, killed. Python's standard library only."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

RUMOR = ''  # set by daemons.py
SLOW = float(os.environ.get('RUMOR_TEST_PATIENCE', '1'))  # sanitizer builds take longer


RESERVED = []  # sockets that are bound for as long as this process lives


def reserve(port):
    """The port is nobody's until this process ends; 0: any one. Errors: OSError, it is in use."""
    one = socket.socket()
    one.bind(('127.0.0.1', port))
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    RESERVED.append(one)


def free_ports(count):
    """Ports that the system gives to nobody until this process ends; peers, whose sockets have SO_REUSEADDR, may listen
    there all the same (tools/sim/reserved_ports.h)."""
    for _ in range(count):
        reserve(0)
    return [one.getsockname()[1] for one in RESERVED[-count:]]


def run(*args, timeout=60):
    return subprocess.run([RUMOR, *args], capture_output=True, text=True, errors='replace', timeout=timeout * SLOW,
                          check=False)


def only_peer():
    """Whether the program has no other command than `peer` (peer_only.cc, for the thread sanitizer)."""
    return os.path.basename(RUMOR) == 'peer_only'


def wait_for(what, condition, seconds=30, progress=None):
    """Until condition() holds. With progress, seconds count from when progress() last grew: machines differ."""
    end, furthest = time.monotonic() + seconds * SLOW, None
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        reached = progress() if progress else None
        if reached is not None and (furthest is None or reached > furthest):
            end, furthest = time.monotonic() + seconds * SLOW, reached
        time.sleep(0.05)
    raise AssertionError(f'not within {seconds} s: {what}')


def ask(address, path):
    """The JSON at a path of a status address; None while there is none."""
    try:
        with urllib.request.urlopen(f'http://{address}{path}', timeout=5) as response:
            return json.load(response)
    except (OSError, ValueError):
        return None


class Peer:
    """One peer of a run; survives its process being killed and started again."""

    def __init__(self, swarm, index, seeds):
        self.swarm, self.index, self.seeds = swarm, index, seeds
        self.listen = f'127.0.0.1:{swarm.ports[2 * index]}'
        self.status_address = f'127.0.0.1:{swarm.ports[2 * index + 1]}'
        self.state = os.path.join(swarm.directory, f'state-{index}')
        self.log = os.path.join(swarm.directory, f'log-{index}')
        self.result = os.path.join(swarm.directory, f'result-{index}.json')
        self.process, self.killed = None, False

    def start(self, *extra, wrap=()):
        args = [*wrap, RUMOR, 'peer', self.swarm.run_name, '--listen', self.listen, '--status', self.status_address,
                '--state', self.state, '--shard', f'{self.index + 1}/{self.swarm.count}', '--json', self.result, *extra]
        if self.seeds:
            args += ['--seed', ','.join(self.seeds)]
        if self.swarm.samples:
            args += ['--until-samples', str(self.swarm.samples)]
        for assignment in self.swarm.assignments:
            args += ['--set', assignment]
        with open(self.log, 'a', encoding='utf-8') as log:
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.killed = False
        return self

    def status(self):
        return ask(self.status_address, '/status')

    def get(self, path):
        return ask(self.status_address, path)

    def samples(self):
        status = self.status()
        return status['samples'] if status else 0

    def kill(self):
        self.killed = True
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20 * SLOW)

    def final(self):
        with open(self.result, encoding='utf-8') as file:
            return json.load(file)

    def said(self):
        with open(self.log, encoding='utf-8') as file:
            return file.read()


class Swarm:
    """Peers on loopback with a directory of their own; whatever happens, no process is left behind."""

    def __init__(self, count, samples, *assignments, run_name='synthetic'):
        self.count, self.samples, self.run_name = count, samples, run_name
        self.assignments = list(assignments) + ([f'run.samples={samples}'] if samples else [])
        self.temporary = tempfile.TemporaryDirectory(prefix='rumor-test-')
        self.directory = self.temporary.name
        self.ports = free_ports(2 * count)
        addresses = [f'127.0.0.1:{self.ports[2 * i]}' for i in range(count)]
        self.peers = [Peer(self, i, [a for k, a in enumerate(addresses) if k != i]) for i in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for peer in self.peers:
            if peer.process and peer.process.poll() is None:
                peer.process.kill()
                peer.process.wait()
            if kind and os.path.exists(peer.log):
                print(f'---- peer {peer.index} said:\n{peer.said()[-3000:]}')
        self.temporary.cleanup()

    def all_alive(self):
        """Nobody has ended but those we killed: neither by a crash nor by a verdict of its own."""
        for peer in self.peers:
            if peer.process and not peer.killed:
                assert peer.process.poll() is None, f'peer {peer.index} ended with {peer.process.returncode}'
        return True

    def progress(self):
        return max((peer.samples() for peer in self.peers if peer.process and peer.process.poll() is None), default=0)

    def await_progress(self, samples):
        wait_for(f'{samples} samples', lambda: self.progress() >= samples, 30, self.progress)

    def finish(self, peers=None, seconds=60):
        """Waits for a clean end of all, then demands equal replicas with nothing lost."""
        peers = peers or self.peers
        for peer in peers:
            wait_for(f'the end of peer {peer.index}', lambda p=peer: p.process.poll() is not None, seconds,
                     self.progress)
            assert peer.process.returncode == 0, f'peer {peer.index} ended with {peer.process.returncode}'
        finals = [peer.final() for peer in peers]
        digests = {final['digest'] for final in finals}
        assert len(digests) == 1, f'digests differ: {digests}'
        assert len({final['updates'] for final in finals}) == 1
        for final in finals:
            assert final['samples'] >= self.samples, final['samples']
            assert final['traffic']['updates_lost'] == 0, final['traffic']
            assert final['traffic']['updates_invalid'] == 0, final['traffic']
        return finals
