"""Models in stages: three stages served by real peers, one killed with -9; the parts joined. usage: stages.py RUMOR
SCENARIO; by hand: stages.py RUMOR storm SECONDS"""
import json
import os
import random
import shutil
import sys
import time

import peers
from admission import key
from peers import Swarm, run, wait_for

STAGES = 3
SAMPLES = 30_000


class Stages(Swarm):
    """Peer i serves stage i modulo the stages. All have one seed of another stage."""

    def __init__(self, count, samples, *assignments, **more):
        super().__init__(count, samples, f'pipeline.stages={STAGES}', *assignments, **more)
        for peer in self.peers:
            peer.seeds = [self.peers[STAGES - 1 if peer.index == 0 else 0].listen]

    def start(self, peer, *more):
        peer.start('--stage', f'{peer.index % STAGES + 1}/{STAGES}', '--checkpoint-every', '1', '--threads', '1', *more)

    def ended(self, seconds):
        """All have ended well, each within so many seconds. Returns their last figures."""
        finals = []
        for peer in self.peers:
            wait_for(f'the end of peer {peer.index}', lambda p=peer: p.process.poll() is not None, seconds,
                     self.progress)
            assert peer.process.returncode == 0, f'peer {peer.index} ended with {peer.process.returncode}'
            finals.append(peer.final())
        return finals

    def finish_stages(self):
        """All end well; replicas of a stage are equal, and each stage has seen all rows but some of its last steps."""
        finals = self.ended(30)
        for stage in range(STAGES):
            of_stage = finals[stage::STAGES]
            assert len({final['digest'] for final in of_stage}) == 1, [final['digest'] for final in of_stage]
            assert len({final['run_id'] for final in of_stage}) == 1
            for final in of_stage:
                assert final['stage']['stage'] == stage + 1 and final['stage']['stages'] == STAGES, final['stage']
                assert 0.97 * self.samples < final['samples'] < 1.03 * self.samples, final['samples']
                assert final['traffic']['updates_invalid'] == final['traffic']['updates_lost'] == 0, final['traffic']
        assert len({final['run_id'] for final in finals}) == STAGES
        assert len({final['stage']['pipeline'] for final in finals}) == 1
        return finals


def stage_of(peer):
    return (peer.status() or {}).get('stage') or {}


def evaluated(swarm, file, *settings):
    """Loss and accuracy of exported weights on the test set, as an ordinary peer finds them."""
    result = os.path.join(swarm.directory, 'evaluated.json')
    sets = [part for setting in settings for part in ('--set', setting)]
    done = run('peer', swarm.run_name, '--weights', file, '--until-samples', '0', '--listen', '127.0.0.1:0',
               '--json', result, *sets)
    assert done.returncode == 0, done.stderr
    with open(result, encoding='utf-8') as opened:
        return json.load(opened)


def killed():
    """Two peers for each stage. One of stage 2 is killed and comes back, then both of stage 3, one of them without its
    state; all end equal."""
    with Stages(6, SAMPLES, 'model.hidden=[48,48]') as swarm:
        for peer in swarm.peers:
            swarm.start(peer)
        victim, upper = swarm.peers[1], swarm.peers[2::STAGES]
        wait_for('links between all stages', lambda: all(
            (stage_of(p).get('below') == 2 or p.index % STAGES == 0) and
            (stage_of(p).get('above') == 2 or p.index % STAGES == STAGES - 1) for p in swarm.peers))
        swarm.await_progress(3_000)
        first_loss = swarm.peers[0].status()['train_loss']
        uppers = stage_of(swarm.peers[0])['uppers']  # each peer of stage 2 answers it
        assert {one['node_id'] for one in uppers} == {p.status()['node_id'] for p in swarm.peers[1::STAGES]}, uppers
        assert all(one['answered'] > 0 and one['pace_ms'] > 0 for one in uppers), uppers
        assert 'stage 1 computes' in swarm.peers[0].status()['limit']['text'], swarm.peers[0].status()['limit']
        assert run('top', swarm.peers[0].status_address).stdout.count(uppers[0]['node_id'][:8]) > 0
        victim.kill()
        swarm.await_progress(swarm.progress() + 2_000)  # the other one of the stage goes on
        swarm.start(victim)
        wait_for('the restarted peer to train', lambda: stage_of(victim).get('counted'), 30, swarm.progress)
        assert victim.status()['samples'] > 2_000, victim.status()['samples']

        for peer in upper:
            peer.kill()
        wait_for('a word about it', lambda: 'no peer of stage 3' in (victim.status() or {}).get('waiting_for', ''))
        stands = swarm.progress()
        shutil.rmtree(upper[1].state)  # it joins anew, and takes the weights of its stage from the other
        for peer in upper:
            swarm.start(peer)
        wait_for('training to go on', lambda: swarm.progress() > stands + 2_000, 30)
        swarm.all_alive()

        finals = swarm.finish_stages()
        assert all(final['train_loss'] < 0.5 * first_loss for final in finals), [f['train_loss'] for f in finals]
        joined(swarm)


def joined(swarm):
    """Any replicas of the stages, in any order, give the same model, which has learned; and what cannot be joined."""
    states = [peer.state for peer in swarm.peers]
    one, other = (os.path.join(swarm.directory, name) for name in ('one.safetensors', 'other.safetensors'))
    assert run('export', *states[:STAGES], '--to', one).returncode == 0
    assert run('export', *reversed(states[STAGES:]), '--to', other).returncode == 0
    with open(one, 'rb') as first, open(other, 'rb') as second:
        assert first.read() == second.read()
    found = evaluated(swarm, one, 'model.hidden=[48,48]')
    assert found['accuracy'] > 0.8, found['accuracy']
    print(f'ok      joined: accuracy {found["accuracy"]:.3f}')
    for given, word in ((states[:2], 'stage 3 of 3 is missing'), ([*states[:3], states[4]], 'both have stage 2'),
                        (states[:1], 'stage 2 of 3 is missing')):
        refused = run('export', *given, '--to', os.path.join(swarm.directory, 'none'))
        assert refused.returncode != 0 and word in refused.stderr, refused.stderr
    refused = run('sample', states[0])
    assert refused.returncode != 0 and 'join the stages' in refused.stderr, refused.stderr
    wrong = run('peer', swarm.run_name, '--stage', '2', '--state', states[0], '--listen', '127.0.0.1:0',
                *[part for setting in swarm.assignments for part in ('--set', setting)])
    assert wrong.returncode != 0 and 'belongs to another run' in wrong.stderr, wrong.stderr


def text():
    """A small GPT, one peer for each stage; only the first has the text. The joined folder writes."""
    words = 'the cat sat on the mat and the dog sat on the log. '
    settings = ['model.layers=3', 'model.heads=2', 'model.embedding=32', 'model.context=32', 'model.tied_head=false',
                'optimizer.batch=8', 'optimizer.rate=0.01', 'compress.density=0.05', 'exchange.period_ms=0',
                'exchange.local_steps=1', 'pipeline.micro_batches=4', 'pipeline.border=bf16']
    with Stages(3, 12_000, *settings, run_name='text-gpt') as swarm:
        path = os.path.join(swarm.directory, 'text.txt')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(words * 400)
        for peer in swarm.peers:
            swarm.start(peer, '--set', f'data.path={path if peer.index == 0 else path + ".none"}')
        finals = swarm.finish_stages()
        said = swarm.peers[0].said()
        assert 'training loss ' in said and 'to evaluate: rumor export STATE' in said, said
        folder = os.path.join(swarm.directory, 'joined')
        assert run('export', *[peer.state for peer in swarm.peers], '--to', folder).returncode == 0
        said = run('sample', folder, '--prompt', 'the cat ', '--length', '120', '--seed', '3')
        assert said.returncode == 0, said.stderr
        spoken = said.stdout.split()[:-1]  # the last may be cut off
        assert sum(word in set(words.split()) for word in spoken) > 0.6 * len(spoken), said.stdout
        print(f'ok      train loss {finals[0]["train_loss"]:.3f}: {said.stdout.strip()}')


def token():
    """A closed pipeline: a token that the owner makes for the run file lets its bearer into any stage, also one
    that it chooses, and nobody else comes in."""
    with Stages(3, 6_000, 'model.hidden=[48,48]') as swarm:
        boss, file, allowed = (os.path.join(swarm.directory, name) for name in ('boss', 'join.token', 'allowed.txt'))
        swarm.assignments.append(f'run.owner={key("new", "--state", boss)}')
        settings = [word for assignment in swarm.assignments for word in ('--set', assignment)]
        key('token', 'synthetic', *settings, '--owner', boss, '--out', file)
        for peer in swarm.peers[:2]:
            key('allow', allowed, key('new', '--state', peer.state))
        for peer in swarm.peers[:2]:
            swarm.start(peer, '--allow', allowed)
        last = swarm.peers[2]
        swarm.start(last, '--allow', allowed)
        assert last.process.wait(20 * peers.SLOW) == 3, last.said()
        assert 'does not admit this peer' in last.said(), last.said()
        last.state += '-chosen'  # with a token it is told who is a member, and so finds the stage without a peer
        last.start('--stage', 'auto', '--allow', allowed, '--token', file, '--checkpoint-every', '1', '--threads', '1')
        finals = swarm.finish_stages()
        assert finals[2]['stage']['chosen'] == 'stage 3 has no live peer', finals[2]['stage']


def auto():
    """Six peers choose among three stages; all peers of one are killed, one of the others takes their place. Those that
    were killed come back, and all end equal."""
    with Stages(6, 2 * SAMPLES, 'model.hidden=[48,48]') as swarm:
        def serving(stage):
            return [peer for peer in swarm.peers if not peer.killed and stage_of(peer).get('stage') == stage]

        def begin(peer):
            peer.start('--stage', 'auto', '--checkpoint-every', '1', '--threads', '1')

        for peer in swarm.peers:
            peer.seeds = [swarm.peers[k].listen for k in (0, 3) if k != peer.index]
            begin(peer)
        wait_for('a peer for each stage', lambda: all(serving(stage + 1) for stage in range(STAGES)), 60)
        swarm.await_progress(3_000)
        wait_for('all to serve', lambda: sum(len(serving(stage + 1)) for stage in range(STAGES)) == 6)
        for peer in swarm.peers:
            status = stage_of(peer)
            assert f'stage {status["stage"]} has' in status['chosen'], status
            assert f'serves stage {status["stage"]} of 3: {status["chosen"]}' in peer.said(), peer.said()
        lost = min((2, 3), key=lambda stage: len(serving(stage)))
        victims = serving(lost)
        others = [peer for peer in swarm.peers if peer not in victims]
        moved_before = sum(peer.said().count('moves to stage') for peer in others)
        for peer in victims:
            peer.kill()
        stands, began = swarm.progress(), time.monotonic()
        mover, = wait_for('a move to the empty stage', lambda: serving(lost), 40)
        wait_for('training to go on', lambda: swarm.progress() > stands + 2_000, 30)
        print(f'ok      {len(victims)} peers of stage {lost} lost; trains on after {time.monotonic() - began:.1f} s')
        assert f'moves to stage {lost}: stage {lost} has no live peer' in mover.said(), mover.said()
        assert os.path.exists(os.path.join(mover.state, f'stage-{lost}', 'stage.json'))
        for peer in victims:
            begin(peer)
        swarm.all_alive()
        finals = chosen_finals(swarm)
        assert sum(peer.said().count('moves to stage') for peer in others) == moved_before + 1
        folders = [os.path.join(peer.state, f'stage-{final["stage"]["stage"]}')
                   for peer, final in zip(swarm.peers, finals)]
        first = [next(f for f in folders if f.endswith(str(stage + 1))) for stage in range(STAGES)]
        assert run('export', *first, '--to', os.path.join(swarm.directory, 'joined')).returncode == 0


def chosen_finals(swarm):
    """All end well, and those that end with one stage are equal."""
    finals = swarm.ended(60)
    for stage in range(STAGES):
        of_stage = [final for final in finals if final['stage']['stage'] == stage + 1]
        assert of_stage and len({final['digest'] for final in of_stage}) == 1, [final['digest'] for final in of_stage]
        for final in of_stage:
            assert final['traffic']['updates_invalid'] == final['traffic']['updates_lost'] == 0, final['traffic']
    return finals


class OfStages:
    """A process that serves several stages; its ports follow one another."""

    def __init__(self, swarm, peer, words, stages):
        self.swarm, self.peer, self.words, self.stages = swarm, peer, words, stages
        listen, status = adjacent_ports(len(stages)), adjacent_ports(len(stages))
        peer.listen, peer.status_address = f'127.0.0.1:{listen}', f'127.0.0.1:{status}'
        self.statuses = [f'127.0.0.1:{status + k}' for k in range(len(stages))]

    def start(self, *more):
        self.peer.start('--stage', self.words, '--checkpoint-every', '1', '--threads', '1', *more)
        return self

    def status(self):
        """The status of each stage that answers."""
        return [found for found in (peers.ask(address, '/status') for address in self.statuses) if found]

    def counted(self):
        """All its stages have counted micro-batches in this process."""
        found = self.status()
        return len(found) == len(self.stages) and all(one['stage'].get('counted') for one in found)

    def state(self, stage):
        return os.path.join(self.peer.state, f'stage-{stage}')

    def states(self):
        return [self.state(stage) for stage in self.stages]

    def ended(self, seconds, status=0):
        wait_for(f'the end of {self.words}', lambda: self.peer.process.poll() is not None, seconds)
        assert self.peer.process.returncode == status, (self.peer.process.returncode, self.peer.said()[-2000:])

    def finals(self):
        found = self.peer.final()['stages']
        assert [one['stage']['stage'] for one in found] == list(self.stages), found
        return found


def adjacent_ports(count):
    """The first of so many ports in a row that are free."""
    for _ in range(200):
        first, = peers.free_ports(1)
        try:
            for port in range(first + 1, first + count):
                peers.reserve(port)
            return first
        except OSError:
            pass
    raise AssertionError(f'no {count} free ports in a row')


def several():
    """One process has stages 1 and 2, one stage 3, one all three. The first is killed and comes back with its keys
    from its state. Then the replicas of each stage are equal, and parts of two processes give one model."""
    with Stages(3, SAMPLES, 'model.hidden=[48,48]') as swarm:
        lower = OfStages(swarm, swarm.peers[0], '1,2/3', (1, 2))
        upper = swarm.peers[1]
        whole = OfStages(swarm, swarm.peers[2], 'all', (1, 2, 3))
        upper.seeds, whole.peer.seeds, lower.peer.seeds = [lower.peer.listen], [lower.peer.listen], []
        lower.start()
        upper.start('--stage', '3', '--checkpoint-every', '1', '--threads', '1')
        whole.start()
        wait_for('all to count', lambda: lower.counted() and whole.counted() and stage_of(upper).get('counted'), 30)
        nodes = [one['node_id'] for one in lower.status()]
        assert len(set(nodes)) == 2 and key('show', '--state', lower.peer.state).split() == [
            nodes[0], 'stage-1', nodes[1], 'stage-2'], nodes
        swarm.await_progress(4_000)
        lower.peer.kill()
        stands = whole.status()[0]['samples']
        wait_for('the others to go on', lambda: whole.status()[0]['samples'] > stands + 1_000, 30)
        lower.start()
        wait_for('the restarted process to count', lower.counted, 30)
        assert [one['node_id'] for one in lower.status()] == nodes
        for process in (lower, whole):
            process.ended(40)
        wait_for('the end of stage 3', lambda: upper.process.poll() is not None, 40)
        assert upper.process.returncode == 0, upper.said()
        finals = lower.finals() + [upper.final()]
        for one, other in zip(finals, whole.finals()):
            assert one['digest'] == other['digest'] and one['run_id'] == other['run_id'], (one['stage'], other['stage'])
            assert one['samples'] == other['samples'] and 0.97 * SAMPLES < one['samples'] < 1.03 * SAMPLES
            for final in (one, other):
                assert final['traffic']['updates_invalid'] == final['traffic']['updates_lost'] == 0, final['traffic']
        said = lower.peer.said()
        assert all(f'rumor: stage {stage}: listening on' in said for stage in (1, 2)), said
        files = [os.path.join(swarm.directory, name) for name in ('mixed.safetensors', 'whole.safetensors')]
        for file, states in zip(files, ([*lower.states(), upper.state], whole.states())):
            assert run('export', *states, '--to', file).returncode == 0
        with open(files[0], 'rb') as mixed, open(files[1], 'rb') as alone:
            assert mixed.read() == alone.read()
        found = evaluated(swarm, files[0], 'model.hidden=[48,48]')
        assert found['accuracy'] > 0.8, found['accuracy']
        print(f'ok      accuracy {found["accuracy"]:.3f}')


def single():
    """All stages in one process train alone. Ctrl-C leaves a checkpoint of each, and the next process goes on from
    them. A stage that cannot start ends the others, and is named."""
    with Swarm(1, 0, f'pipeline.stages={STAGES}', 'model.hidden=[48,48]', 'run.samples=100000000') as swarm:
        process = OfStages(swarm, swarm.peers[0], '3,1,2/3', (3, 1, 2))
        process.start()
        wait_for('2,000 samples', lambda: [one['samples'] > 2_000 for one in process.status()] == [True] * 3, 30)
        process.peer.process.send_signal(2)
        process.ended(20)
        before = process.finals()
        assert all(one['digest'] and one['samples'] > 2_000 for one in before), before
        process.start()
        wait_for('it to count again', process.counted, 30)
        assert process.peer.said().count('going on from the checkpoint') == 3, process.peer.said()
        again = process.status()
        assert all(late['samples'] >= early['samples'] for early, late in zip(before, again)), (before, again)
        process.peer.process.send_signal(15)
        process.ended(20)
        assert [one['samples'] for one in process.finals()] >= [one['samples'] for one in again]

        checkpoints = [os.path.join(process.state(1), f'checkpoint.{k}') for k in (1, 2)]
        kept = os.path.getmtime(os.path.join(process.state(3), 'checkpoint.1'))
        for path in checkpoints:
            with open(path, 'wb') as file:
                file.write(b'no checkpoint')
        process.start()
        process.ended(20, 1)
        said = process.peer.said()
        assert 'rumor: stage 1: ' in said and 'damaged' in said, said
        assert 'stage 3: stopping with the other stages' in said, said
        assert 'stage 2: listening' not in said[said.rindex('damaged'):], said
        assert os.path.getmtime(os.path.join(process.state(3), 'checkpoint.1')) > kept
        print(f'ok      {before[0]["samples"]} samples, then {again[0]["samples"]}')


def stage_is_equal(of_stage):
    """The replicas of a stage are equal, and hold all that was ever applied."""
    found = [peer.status() or {} for peer in of_stage]
    traffic = [one.get('traffic', {}) for one in found]
    return len({one.get('digest') for one in found}) == 1 and all(one.get('updates_lost') == 0 for one in traffic)


def storm():
    """Three peers for each stage; one or the other is killed with -9 all the time. Then all stages are equal."""
    with Stages(9, 0, 'model.hidden=[48,48]', 'run.samples=100000000') as swarm:
        chance, kills, end = random.Random(5), 0, time.monotonic() + float(sys.argv[3])
        for peer in swarm.peers:
            peer.seeds = [swarm.peers[0].listen, swarm.peers[4].listen]
            swarm.start(peer)
        swarm.await_progress(1_000)
        while time.monotonic() < end:
            victim = chance.choice(swarm.peers)
            victim.kill()
            kills += 1
            time.sleep(chance.uniform(0.1, 0.6))
            swarm.start(victim)
            time.sleep(chance.uniform(0.1, 0.5))
        swarm.await_progress(swarm.progress() + 10_000)
        swarm.all_alive()
        trained = swarm.progress()
        for idle, others in (((0,), (1, 2)), ((1, 2), (0,))):  # an idle stage is soon equal
            stopped = [peer for stage in idle for peer in swarm.peers[stage::STAGES]]
            for peer in stopped:
                assert peer.stop() == 0, peer.said()
            for stage in others:
                wait_for(f'equal replicas of stage {stage + 1}', lambda s=stage: stage_is_equal(swarm.peers[s::STAGES]))
            for peer in stopped:
                swarm.start(peer)
            wait_for('all to be back', lambda again=stopped: all(peer.status() for peer in again))
        print(f'ok      {kills} kills, {trained} samples')


if __name__ == '__main__':
    peers.RUMOR = sys.argv[1]
    {'killed': killed, 'text': text, 'token': token, 'auto': auto, 'several': several,
     'single': single, 'storm': storm}[sys.argv[2]]()
