"""Real daemons under real trouble. usage: daemons.py RUMOR SCENARIO"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import peers
from peers import Swarm, run, wait_for


def come_and_go():
    """One run in which a peer is killed and comes back, one joins late, the first seed is killed for good, and all are
    restarted from their state directories. The others go on each time, and all end equal."""
    with Swarm(5, 120_000) as swarm:
        first, back, late = swarm.peers[0], swarm.peers[2], swarm.peers[4]
        first.seeds = [p.listen for p in swarm.peers[1:4]]
        for peer in swarm.peers[1:4]:
            peer.seeds = [first.listen]
        late.seeds = [swarm.peers[1].listen]
        for peer in swarm.peers[:4]:
            peer.start()
        swarm.await_progress(12_000)

        back.kill()
        swarm.await_progress(swarm.progress() + 4_000)  # three train on
        back.start()
        wait_for('the restarted peer to train', lambda: (back.status() or {}).get('steps'), 30, swarm.progress)

        late.start()  # with an empty state directory, through one seed
        wait_for('the late peer to train', lambda: (late.status() or {}).get('steps'), 30, swarm.progress)
        wait_for('the late peer to know all', lambda: (late.status() or {}).get('members') == 5, 30, swarm.progress)

        first.kill()  # the peer that everybody was seeded with
        swarm.await_progress(swarm.progress() + 4_000)
        swarm.all_alive()

        rest = swarm.peers[1:]
        reached = swarm.progress()
        for peer in rest:
            peer.process.send_signal(signal.SIGTERM)
        for peer in rest:
            assert peer.process.wait(20 * peers.SLOW) == 0
        for peer in rest:
            peer.start()
        status = wait_for('a status after the restart', rest[0].status)
        assert status['samples'] >= reached - 5_000, (status['samples'], reached)
        swarm.finish(rest)


def alone():
    """One peer with no reachable seed trains to the end, says what it is waiting for, and forgets no address."""
    with Swarm(2, 20_000, 'exchange.period_ms=1') as swarm:
        peer = swarm.peers[0]  # its seed, peer 1, never starts
        addresses = os.path.join(peer.state, 'addresses')
        os.makedirs(peer.state, exist_ok=True)
        with open(addresses, 'w', encoding='utf-8') as file:
            file.write(f'{swarm.peers[1].listen}\n')  # of an earlier life
        peer.start()
        status = wait_for('training', lambda: (peer.status() or {}).get('steps') and peer.status())
        assert swarm.peers[1].listen in status['waiting_for'], status['waiting_for']
        wait_for('a pause between two steps', lambda: 0 < (peer.status() or {}).get('pause_ms', 0) < 20_000)
        final = swarm.finish([peer])[0]
        assert final['accuracy'] > 0.6, final['accuracy']
        assert os.path.exists(os.path.join(peer.state, 'checkpoint.1')), os.listdir(peer.state)
        with open(addresses, encoding='utf-8') as file:
            assert file.read() == f'{swarm.peers[1].listen}\n', 'who met nobody has overwritten what it knew'


def goodbye():
    """Who has said goodbye is not waited for: the other ends when it has trained, not ten seconds later."""
    with Swarm(2, 12_000) as swarm:
        for peer in swarm.peers:
            peer.start()
        wait_for('a link', lambda: all((s := p.status()) and s['peers'] and s['steps'] for p in swarm.peers))
        assert swarm.peers[0].stop() == 0
        swarm.finish(swarm.peers[1:], seconds=8)


def two_peers():
    """The shortest whole run; also what the thread sanitizer watches."""
    with Swarm(2, 12_000) as swarm:
        for peer in swarm.peers:
            peer.start()
        swarm.finish()


def hogwild():
    """A peer of two racing workers and one of the ordinary kind make one run, with equal replicas."""
    with Swarm(2, 20_000) as swarm:
        swarm.peers[0].start('--set', 'optimizer.hogwild=2')
        swarm.peers[1].start()
        finals = swarm.finish()
        assert finals[0]['steps'] > 0 and finals[1]['steps'] > 0, 'one of them never trained'
        assert finals[0]['accuracy'] > 0.6, finals[0]['accuracy']


def own_models(mode, *keys):
    """Five peers with models of their own: one is killed with -9 and comes back, one joins late. What is held of a
    neighbour is that neighbour's copy."""
    samples = 60_000 if peers.SLOW == 1 else 30_000
    keys = (f'exchange.mode={mode}', *keys, 'exchange.period_ms=15', f'run.samples={samples}')
    with Swarm(5, 0, *keys) as swarm:  # they train, and then serve on
        for peer in swarm.peers[:4]:
            peer.start()
        swarm.await_progress(10_000)
        swarm.peers[2].kill()
        swarm.await_progress(swarm.progress() + 4_000)
        swarm.peers[2].start()
        swarm.peers[4].start()
        joined = wait_for('the late one to train', lambda: (s := swarm.peers[4].status()) and s['steps'] and s)
        assert joined['updates'] > joined['steps'], 'it did not begin with a copy of another'
        if not peers.only_peer():
            text = ' '.join(run('status', swarm.peers[0].status_address).stdout.split())  # it wraps lines
            assert 'public copies' in text and 'never equal' in text, text
            stats = json.loads(run('stats', swarm.peers[0].status_address, '--json', '-').stdout)
            assert 'never equal' in stats['guarantee'], stats
        for peer in swarm.peers:
            wait_for(f'the end of training of peer {peer.index}, and equal copies', lambda p=peer: (
                (s := p.status()) and s['phase'] == 'finished' and len(s['peers']) == 4 and s['digests_equal']), 90,
                     swarm.progress)
        finals = [peer.status() for peer in swarm.peers]
        assert len({final['digest'] for final in finals}) == 5, 'public copies are one peer\'s each'
        for final in finals:
            assert final['exchange'] == mode and final['accuracy'] > 0.6, final['accuracy']
            assert 0.91 * samples < final['samples'] < 1.1 * samples, final['samples']
            assert final['traffic']['updates_invalid'] == 0, final['traffic']
        assert [peer.stop() for peer in swarm.peers] == [0] * 5
        exported = os.path.join(swarm.directory, 'model.safetensors')
        assert peers.only_peer() or run('export', swarm.peers[0].state, '--to', exported).returncode == 0, 'no export'


def average():
    """They average with their neighbours."""
    own_models('average', 'optimizer.rate=0.2', 'compress.density=0.05')
    alone = run('peer', 'synthetic', '--set', 'exchange.mode=sync')
    assert alone.returncode == 2 and 'of the simulator alone' in alone.stderr, alone.stderr


def codistill():
    """They learn from what their neighbours predict."""
    own_models('codistill', 'optimizer.rate=0.2', 'compress.density=0.2', 'exchange.refresh_every=5')


def memory():
    """What a peer says it holds is what the system has given it: four words a parameter, and what goes with rows."""

    def measure(hidden):
        with Swarm(1, 0, f'model.hidden=[{hidden},{hidden}]') as swarm:
            peer = swarm.peers[0]
            peer.start('--checkpoint-every', '3600')
            wait_for('3 steps', lambda: (peer.status() or {}).get('steps', 0) >= 3, 60)
            with open(f'/proc/{peer.process.pid}/status', encoding='utf-8') as file:
                resident = next(1024 * int(line.split()[1]) for line in file if line.startswith('VmRSS'))
            assert peer.stop() == 0
            assert 'bytes a parameter' in peer.said(), peer.said()
            final = peer.final()
            return final['params'], resident, final['memory']

    params, resident, held = measure(4400)
    _, resident_small, held_small = measure(64)
    assert held['bytes_per_parameter'] <= 16.01, held
    told = sum(held[part] - held_small[part] for part in held if part != 'bytes_per_parameter')
    taken = resident - resident_small
    print(f'{params} parameters: {told / params:.2f} bytes each in all, {taken / params:.2f} resident')
    assert abs(taken - told) < 0.05 * told, (taken, told)


def stop_and_stats():
    """SIGTERM is clean; a running peer, its state directory and its capture can be measured."""
    with Swarm(1, 0) as swarm:
        peer = swarm.peers[0]
        capture = os.path.join(swarm.directory, 'capture')
        peer.start('--capture', capture)
        wait_for('50 steps', lambda: (peer.status() or {}).get('steps', 0) > 50)
        for source in (peer.status_address,):
            shown = run('stats', source)
            assert shown.returncode == 0 and 'bits' in shown.stdout, shown.stderr
            assert 'residual age' in shown.stdout and 'staleness' in shown.stdout, shown.stdout
        assert peer.stop() == 0
        for source in (peer.state, capture):
            report = os.path.join(swarm.directory, 'report')
            shown = run('stats', source, '--json', '-', '--report', report)
            assert shown.returncode == 0, shown.stdout + shown.stderr
            figures = json.loads(shown.stdout)
            assert figures['round_trip'] == 'exact' and sum(figures['modes'].values()) >= figures['updates'], figures
            assert figures['layouts']['rumor_adapt'] <= figures['layouts']['rumor'], figures['layouts']
            assert len(figures['history']) == figures['updates'], figures['updates']
            assert ('residual_age' in figures) == (source == peer.state), figures
            with open(os.path.join(report, 'index.html'), encoding='utf-8') as page:
                assert page.read().count('<svg') >= 5


def staleness():
    """Each waits for the other; one that stands still is waited for, and given up when it has been silent for long."""
    with Swarm(2, 0, 'exchange.soft_sync=1', 'run.samples=10000000') as swarm:
        one, other = swarm.peers
        for peer in swarm.peers:
            peer.start()
        wait_for('50 steps of each', lambda: all((peer.status() or {}).get('steps', 0) > 50 for peer in swarm.peers))
        heard = one.status()['compression']['staleness']['peers']
        assert [peer['node_id'] for peer in heard] == [other.status()['node_id']], heard
        shown = run('stats', one.status_address)
        assert f'from {heard[0]["node_id"][:8]}' in shown.stdout, shown.stdout
        other.process.send_signal(signal.SIGSTOP)
        wait_for('the wait to be named', lambda: 'exchange.soft_sync' in one.status()['waiting_for'])
        steps = one.status()['steps']
        status = wait_for('training alone', lambda: (s := one.status())['steps'] > steps + 50 and s)
        assert status['seconds_waited'] >= 1, status['seconds_waited']
        other.process.send_signal(signal.SIGCONT)
        for peer in swarm.peers:
            assert peer.stop() == 0


def turns():
    """One of three trains at a time; one that has all of the data, so no turn of its own, is told so."""
    with Swarm(3, 60_000, 'exchange.trainers=1', 'exchange.period_ms=1') as swarm:
        for peer in swarm.peers:
            peer.start()
        for peer in swarm.peers:
            wait_for('its turn', lambda p=peer: 'its turn to train' in (p.status() or {}).get('waiting_for', ''))
        figures = swarm.finish()
        assert all(one['seconds_waited'] > 0 for one in figures), figures
        assert all('train at once' not in peer.said() for peer in swarm.peers), swarm.peers[0].said()
    with Swarm(2, 20_000, 'exchange.trainers=1') as swarm:
        swarm.peers[1].start()
        swarm.count = 1
        swarm.peers[0].start()
        swarm.finish()
        assert '2 peers train at once' in swarm.peers[0].said(), swarm.peers[0].said()
        assert 'train at once' not in swarm.peers[1].said(), swarm.peers[1].said()


def ctrl_c_cluster():
    """Ctrl-C on a cluster of processes leaves none behind."""
    command = [peers.RUMOR, 'sim', 'synthetic', '--nodes', '3', '--daemons', '--set', 'run.samples=10000000']
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def children():
        path = f'/proc/{process.pid}/task/{process.pid}/children'
        with open(path, encoding='utf-8') as file:
            return [int(pid) for pid in file.read().split()]

    started = wait_for('three peers', lambda: len(children()) == 3 and children())
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(20 * peers.SLOW) == 0
    for pid in started:
        assert not os.path.exists(f'/proc/{pid}'), f'process {pid} is left behind'


def compare():
    """A comparison that is interrupted keeps what it has tried, and goes on from there."""
    with tempfile.TemporaryDirectory(prefix='rumor-compare-') as directory:
        kept = os.path.join(directory, 'kept')
        command = ['compare', 'synthetic', '--nodes', '3', '--rates', '0.5,1', '--keep', kept, '--json', '-', '--set',
                   'run.samples=240000', '--report', os.path.join(directory, 'report')]

        def trials(kind='trial'):
            return sorted(n for n in os.listdir(kept) if n.startswith(kind)) if os.path.isdir(kept) else []

        process = subprocess.Popen([peers.RUMOR, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        wait_for('a trial', trials)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=20 * peers.SLOW)
        assert process.returncode == 0 and not out, (process.returncode, said)
        assert 'the same command goes on from here' in said, said
        before = {name: os.stat(os.path.join(kept, name)).st_mtime_ns for name in trials()}
        assert 0 < len(before) < 6, before
        done = run(*command)
        assert done.returncode == 0, done.stderr
        assert {name: os.stat(os.path.join(kept, name)).st_mtime_ns for name in before} == before
        assert len(trials()) == 6, trials()
        result = json.loads(done.stdout)
        assert [m['method'] for m in result['methods']] == ['broadcast', 'sync', 'alone'], done.stdout
        assert all(m['identical'] and m['accuracy'] > 0.5 for m in result['methods']), done.stdout
        assert 'Fastest:' in done.stderr and len(result['reading']) >= 3, done.stderr
        with open(os.path.join(directory, 'report', 'index.html'), encoding='utf-8') as page:
            assert 'Accuracy against virtual seconds' in page.read()
        assert run(*command).stdout == done.stdout  # nothing but kept trials: the same to the last digit
        # Elsewhere, what rounds learn is known already; broadcast's is not.
        learned = trials('learned')
        assert len(learned) == 2, learned
        elsewhere = run(*command, '--network', 'home', '--methods', 'sync,alone')
        assert elsewhere.returncode == 0 and trials('learned') == learned and len(trials()) == 10, elsewhere
        there, here = json.loads(elsewhere.stdout)['methods'][0], result['methods'][1]
        assert there['loss'] == here['loss'] and there['virtual_seconds'] > 2 * here['virtual_seconds'], there
        # What was kept at other times of a run is of no use, and no obstacle.
        for name in learned:
            path = os.path.join(kept, name)
            with open(path, encoding='utf-8') as file:
                trial = json.load(file)
            trial['curve'] = trial['curve'][:1]
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(trial, file)
        again = run(*command, '--network', 'wan', '--methods', 'sync,alone')
        assert again.returncode == 0 and json.loads(again.stdout)['methods'][0]['loss'] == here['loss'], again
        # Looked at less often, it ends as it did.
        seldom = run(*command, '--points', '4', '--methods', 'broadcast')
        assert seldom.returncode == 0, seldom.stderr
        few, many = json.loads(seldom.stdout)['methods'][0], result['methods'][0]
        assert few['loss'] == many['loss'] and few['virtual_seconds'] == many['virtual_seconds'], (few, many)
        assert [len(m['runs'][0]['curve']) for m in (few, many)] == [6, 26], (few, many)  # and begin and end
        refused = run('compare', 'synthetic', '--methods', 'broadcast,gossip')
        assert refused.returncode == 2 and "no method 'gossip'" in refused.stderr, refused.stderr


def frontier():
    """One page of every setting; an interruption leaves no page and keeps what has ended."""
    with tempfile.TemporaryDirectory(prefix='rumor-frontier-') as directory:
        kept, page = os.path.join(directory, 'kept'), os.path.join(directory, 'page', 'index.html')
        command = ['compare', 'synthetic', '--nodes', '3', '--rates', '1', '--keep', kept, '--json', '-',
                   '--points', '4', '--set', 'run.samples=24000', '--frontier', os.path.dirname(page),
                   '--budgets', '0.2,1', '--methods', 'broadcast,sync:exchange.local_steps=5,sync,alone']
        process = subprocess.Popen([peers.RUMOR, *command, '--set', 'run.samples=2400000'], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for('its directory', lambda: os.path.isdir(kept))
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=20 * peers.SLOW)
        assert process.returncode == 0 and not out and 'the same command goes on' in said, (process.returncode, said)
        assert '6 settings of 4 methods, 6 runs' in said and not os.path.exists(page), said
        done = run(*command)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert [m['method'] for m in result['methods']] == [p['run'] for p in result['frontier']['points']], done.stdout
        points = {p['run']: p for p in result['frontier']['points']}
        assert 3.9 < points['sync']['bytes_per_parameter'] < 5.4, points['sync']  # 16 / 3, and no ring after the end
        assert points['alone']['bytes_per_parameter'] == 0 and not points['alone']['on_frontier'], points['alone']
        assert points['broadcast:compress.density=0.002']['on_frontier'], points
        assert f'page: {page}' in done.stderr and 'on the frontier of' in done.stderr, done.stderr
        with open(page, encoding='utf-8') as file:
            text = file.read()
        assert 'local SGD' in text and 'density 0.2 %' in text and 'alone: sends nothing' in text, text[:2000]
        assert run(*command).stdout == done.stdout  # nothing but kept trials


SCENARIOS = {f.__name__: f for f in (come_and_go, alone, goodbye, average, codistill, two_peers, hogwild, memory,
                                     stop_and_stats, staleness, turns, compare, frontier, ctrl_c_cluster)}

if __name__ == '__main__':
    peers.RUMOR = os.path.abspath(sys.argv[1])
    SCENARIOS[sys.argv[2]]()
    print('ok')
