"""`rumor status`, `rumor top` and `rumor doctor` beside real peers, with and without a terminal.

usage: terminal.py RUMOR
"""
import contextlib
import fcntl
import http.server
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import peers
from peers import Swarm, run, wait_for

SECOND_SCREEN, FIRST_SCREEN = b'\x1b[?1049h', b'\x1b[?1049l'


def check_status(swarm):
    address = swarm.peers[0].status_address
    shown = run('status', address)
    assert shown.returncode == 0 and not shown.stderr, shown
    lines = shown.stdout.split('\n')
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    assert lines[0].startswith('synthetic: training, '), lines[0]
    status = swarm.peers[0].status()
    for peer in status['peers']:
        assert any(line.startswith(peer['node_id'][:8] + ' ') for line in lines), lines
    assert any(line.startswith('limit      ') and len(line) > 20 for line in lines), lines
    told = json.loads(run('status', address, '--json').stdout)
    assert told['node_id'] == status['node_id'] and told['version'] and told['limit']['text']
    nobody = run('status', f'127.0.0.1:{peers.free_ports(1)[0]}')
    assert nobody.returncode == 1 and '--status' in nobody.stderr, nobody
    assert run('status', 'nonsense').returncode == 2


def check_top_without_terminal(addresses):
    shown = run('top', *addresses)
    lines = shown.stdout.rstrip('\n').split('\n')
    assert shown.returncode == 0 and len(lines) == 3 and '\x1b' not in shown.stdout, shown
    assert all(len(line) <= 80 for line in lines), lines
    assert [line.split()[0] for line in lines[1:]] == addresses, lines
    dead = f'127.0.0.1:{peers.free_ports(1)[0]}'
    half = run('top', addresses[0], dead)
    assert half.returncode == 0 and f'{dead}' in half.stdout and 'nobody answers' in half.stdout, half
    assert run('top', dead).returncode == 1


def watch(args, end):
    """What `rumor top` wrote to a terminal of 80 columns until `end(file descriptor, process)` made it go."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen([peers.RUMOR, 'top', *args, '--every', '0.2'], stdin=theirs, stdout=theirs,
                               stderr=theirs, start_new_session=True)
    said, asked, end_at = b'', False, time.monotonic() + 20 * peers.SLOW
    while process.poll() is None and time.monotonic() < end_at:
        if select.select([ours], [], [], 0.1)[0]:
            said += os.read(ours, 65536)
        if not asked and said.count(b'\x1b[H') >= 3:  # has drawn three times
            assert termios.tcgetattr(theirs)[3] & termios.ECHO == 0, 'keys are shown'
            end(ours, process)
            asked = True
    if process.poll() is None:
        process.kill()
        raise AssertionError('top does not end')
    while select.select([ours], [], [], 0)[0]:
        said += os.read(ours, 65536)
    assert process.returncode == 0, process.returncode
    assert termios.tcgetattr(theirs) == before, 'the terminal is left otherwise than it was'
    os.close(ours)
    os.close(theirs)
    return said


def check_top_in_terminal(swarm):
    address = swarm.peers[0].status_address
    for end in (lambda ours, process: os.write(ours, b'q'),
                lambda ours, process: process.send_signal(signal.SIGINT)):
        said = watch([address], end)
        assert said.startswith(SECOND_SCREEN) and said.endswith(FIRST_SCREEN), (said[:40], said[-40:])
        assert b'limit      ' in said and b'/s), received ' in said, said[-2000:]


def check_doctor(swarm):
    state = swarm.peers[0].state
    good = run('doctor', 'synthetic', '--state', os.path.join(swarm.directory, 'new'), '--peer',
               swarm.peers[0].status_address, '--dial', swarm.peers[1].listen)
    assert good.returncode == 0 and 'all is well' in good.stdout, good
    for what in ('version', 'clock', 'processor', 'GPU', 'disk', 'run file', 'data', 'listen', 'reachability', 'dial'):
        assert f'  {what} ' in good.stdout, (what, good.stdout)
    in_use = run('doctor', 'synthetic', '--state', state, '--set', f'network.listen={swarm.peers[0].listen}')
    assert in_use.returncode == 0 and 'is in use by process' in in_use.stdout and 'in use' in in_use.stdout, in_use
    dead = f'127.0.0.1:{peers.free_ports(1)[0]}'
    for args, said in (
            (['synthetic', '--set', f'network.seeds=["{dead}"]'], 'Connection refused'),
            (['--dial', dead], 'Connection refused'),
            (['--peer', dead], 'nobody answers'),
            (['fashion-mlp', '--set', 'data.path=/nowhere'], 'data'),
            (['synthetic', '--set', 'network.listen=0.0.0.0:7001'], 'network.advertise')):
        bad = run('doctor', *args)
        assert bad.returncode == 1 and said in bad.stdout and 'BAD ' in bad.stdout, (args, bad)
        assert 'fix: ' in bad.stdout.split('BAD ')[1], bad.stdout
    assert run('doctor', 'no-such-run').returncode == 2
    readable = os.path.join(swarm.directory, 'readable')
    assert run('key', 'new', '--state', readable).returncode == 0
    os.chmod(os.path.join(readable, 'identity.pem'), 0o644)
    bad = run('doctor', '--state', readable)
    assert bad.returncode == 1 and 'chmod 600' in bad.stdout, bad


@contextlib.contextmanager
def served(text):
    """An address that gives this for every path."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass
    with http.server.HTTPServer(('127.0.0.1', 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f'127.0.0.1:{server.server_port}'
        server.shutdown()
        thread.join()


def check_reached(swarm):
    """Both are dialled by the other, whoever dialled the link they have; the third tells a wrong address."""
    lost = swarm.peers[3]
    lost.listen, dead = (f'127.0.0.1:{port}' for port in peers.free_ports(2))  # the others know neither
    lost.start('--set', f'network.advertise=["{dead}"]')
    for peer, other in ((swarm.peers[0], swarm.peers[1]), (swarm.peers[1], swarm.peers[0])):
        def reached(peer=peer):
            return (peer.status() or {})['reach'].get('seconds_ago') is not None
        wait_for('a neighbour to dial it', reached)
        said = run('doctor', '--peer', peer.status_address).stdout
        assert 'has dialled this peer' in said and 'none could' not in said, said
    wait_for('nobody to have dialled it', lambda: 'to dial this peer, and none could' in
             run('doctor', '--peer', lost.status_address).stdout, 40)
    said = run('doctor', '--peer', lost.status_address)
    assert said.returncode == 0 and 'fix: ' in said.stdout.split('none could')[1], said
    assert len(lost.status()['peers']) == 2, 'it has its links all the same'
    lost.kill()
    # What was so once need not be so now.
    status = swarm.peers[0].status()
    for reached, asked, good in (
            (599.9, 600, True), (700, 600, False), (700, 3, True), (3, 600, True), (700, None, True)):
        status['reach'] = {'by': status['node_id'], 'seconds_ago': reached}
        if asked is not None:
            status['reach']['asked_seconds_ago'] = asked
        with served(json.dumps(status)) as address:
            said = run('doctor', '--peer', address).stdout
        assert ('has dialled this peer' in said) == good != ('none could' in said), (reached, asked, said)


def check_token(swarm):
    token = os.path.join(swarm.directory, 'token')
    with open(token, 'w', encoding='utf-8') as file:
        file.write('0123456789abcdef\n')
    peer = swarm.peers[2]
    peer.start('--status-token', token)
    wait_for('it serves', lambda: 'status at' in peer.said())
    for command in ('status', 'top', 'stats'):
        refused = run(command, peer.status_address)
        assert refused.returncode == 2 and '--status-token FILE' in refused.stderr, refused
    shown = wait_for('a status', lambda: run('status', peer.status_address, '--status-token', token).stdout)
    assert shown.startswith('synthetic: '), shown


def main():
    peers.RUMOR = sys.argv[1]
    with Swarm(4, 0, 'exchange.period_ms=20', 'run.samples=10000000') as swarm:
        for peer in swarm.peers[:2]:
            peer.start('--threads', '1')
        wait_for('two peers', lambda: all((p.status() or {}).get('live_peers') == 2 for p in swarm.peers[:2]))
        check_status(swarm)
        check_top_without_terminal([peer.status_address for peer in swarm.peers[:2]])
        check_top_in_terminal(swarm)
        check_doctor(swarm)
        check_reached(swarm)
        check_token(swarm)


if __name__ == '__main__':
    main()
