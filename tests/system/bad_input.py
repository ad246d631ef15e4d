"""What a user may get wrong: one line with cause and fix, the documented exit status. usage: bad_input.py RUMOR"""
import gzip
import os
import sys
import tempfile

import peers
from peers import Swarm, run, wait_for

failures = []


def check(what, result, status, *words):
    lines = [line for line in result.stderr.strip().splitlines() if line]
    problem = ''
    if result.returncode != status:
        problem = f'exit {result.returncode} instead of {status}'
    elif not lines:
        problem = 'nothing on stderr'
    elif not all(word in result.stderr for word in words):
        problem = f'does not say {[w for w in words if w not in result.stderr]}'
    detail = f': {problem}; said: {result.stderr[-400:]}' if problem else ''
    print(('WRONG   ' if problem else 'ok      ') + what + detail)
    if problem:
        failures.append(what)


def of_one_stage(tmp):
    """A state directory that looks like that of one stage."""
    state = os.path.join(tmp, 'one-stage')
    os.makedirs(state, exist_ok=True)
    with open(os.path.join(state, 'checkpoint.1'), 'wb'):
        return state


def usage(tmp):
    bad = os.path.join(tmp, 'bad.toml')
    with open(bad, 'w', encoding='utf-8') as file:
        file.write('[compress]\ndensitty = 0.1\n')
    check('an unknown key', run('sim', bad), 2, 'line 2', 'compress.density')
    check('an unknown key for a peer', run('peer', bad), 2, 'compress.density')
    check('an unknown preset', run('sim', 'fashion-mpl'), 2, 'fashion-mlp')
    check('no subcommand', run(), 2)
    check('an unknown option', run('sim', 'synthetic', '--node', '3'), 2)
    check('a shard that does not exist', run('peer', 'synthetic', '--shard', '5/4'), 2, '--shard', '2/4')
    cut = ('peer', 'synthetic', '--listen', '127.0.0.1:0', '--set', 'pipeline.stages=2')
    check('a stage that does not exist', run(*cut, '--stage', '3'), 2, '--stage 3', 'pipeline.stages = 2')
    check('stages unlike the run file', run(*cut, '--stage', '2/3'), 2, '2/3', 'pipeline.stages = 2')
    check('a capture of any stage', run(*cut, '--stage', 'auto', '--capture', 'none'), 2, 'of one stage')
    check('a choice among one stage', run('peer', 'synthetic', '--stage', 'auto'), 2, 'auto', 'not cut')
    check('a stage named twice', run(*cut, '--stage', '2,2'), 2, '--stage 2,2', 'twice')
    check('several stages unlike the run file', run(*cut, '--stage', '1,2/3'), 2, '1,2/3', 'pipeline.stages = 2')
    check('a list of stages that is none', run(*cut, '--stage', '1-2'), 2, '--stage 1-2', '1,2/4')
    check('a capture of two stages', run(*cut, '--stage', 'all', '--capture', 'none'), 2, '1,2', 'of one stage')
    check('no port for a second stage', run('peer', 'synthetic', '--set', 'pipeline.stages=2', '--stage', '1,2',
                                            '--listen', '127.0.0.1:65535'), 2, 'stage 2', '65536')
    check('all stages of a model that is not cut', run('peer', 'synthetic', '--stage', 'all'), 2, 'not cut')
    check('several stages in the state of one', run(*cut, '--stage', '1,2', '--state', of_one_stage(tmp)), 2,
          'of one stage', '--state')
    check('a model that is cut, without a stage', run(*cut), 2, '--stage')
    check('a stage of a model that is not cut', run('peer', 'synthetic', '--stage', '1/1'), 2, 'not cut')
    check('a stage on a GPU', run(*cut, '--stage', '1', '--device', 'cuda'), 2, '--device')
    check('a stage with records', run(*cut, '--stage', '1', '--set', 'audit.record=true'), 2, 'audit.record = false')
    check('an address without a port', run('peer', 'synthetic', '--listen', 'localhost'), 2, 'localhost')
    check('an open listener', run('peer', 'synthetic', '--listen', '0.0.0.0:0'), 2, '0.0.0.0:0', '--allow')
    check('a GPU, wherever this runs', run('peer', 'synthetic', '--device', 'cuda', '--set', 'optimizer.clip=1'), 2,
          '--device cuda', '--device cpu')
    for device in ('tpu', 'cuda:', 'cuda:1,x', 'cuda:0,', 'cuda:-1'):
        check(f'the device {device}', run('peer', 'synthetic', '--device', device), 2, device, 'cuda:0,1')
    for what, plugin, words in (('no plugin', os.path.join(tmp, 'none.so'), ('none.so', 'nvcc')),
                                ('a plugin that is none', 'libc.so.6', ('libc.so.6', 'one build'))):
        os.environ['RUMOR_CUDA'] = plugin
        check(f'a GPU with {what}', run('peer', 'synthetic', '--device', 'cuda'), 2, '--device cuda', *words)
        del os.environ['RUMOR_CUDA']
    check('an unknown network', run('sim', 'synthetic', '--network', 'moon'), 2, 'wan')
    check('a swarm of faults without a protocol',
          run('sim', 'synthetic', '--faults', 'swarm', '--set', 'exchange.mode=average'), 2, 'kind = "kill"')
    check('unknown faults', run('sim', 'synthetic', '--faults', 'heavy'), 2, 'light')
    check('a baseline that peers do not know', run('peer', 'synthetic', '--set', 'exchange.mode=sync'), 2, 'sync')
    check('a frontier of nothing that sends', run('compare', 'synthetic', '--frontier', tmp, '--methods', 'alone'), 2,
          'broadcast')
    check('a method that is named twice',
          run('compare', 'synthetic', '--frontier', tmp, '--methods', 'sync,broadcast,sync'), 2, 'sync', 'twice')
    check('budgets without a frontier', run('compare', 'synthetic', '--budgets', '1,3'), 2, '--frontier')
    check('two pages in one place',
          run('compare', 'synthetic', '--frontier', os.path.join(tmp, 'p'), '--report', os.path.join(tmp, 'p', '')), 2,
          '--report', 'different')
    check('stats of nothing', run('stats', os.path.join(tmp, 'none')), 1, 'none')
    check('stats of an address where nobody is', run('stats', '127.0.0.1:1'), 1, '127.0.0.1:1', '--status')


def files(tmp):
    junk = os.path.join(tmp, 'junk.safetensors')
    with open(junk, 'wb') as file:
        file.write(b'\xff' * 100)
    check('a safetensors file of junk', run('stats', junk), 1, 'junk.safetensors')
    for name, head in (('new.pt', b'PK\3\4'), ('old.pt', b'\x80\2')):
        with open(os.path.join(tmp, name), 'wb') as file:
            file.write(head + b'\x80' * 100)
        check('a file of torch.save()', run('stats', os.path.join(tmp, name)), 1, name, 'safetensors.torch.save_file')
    data = os.path.join(tmp, 'data')
    os.mkdir(data)
    check('a data set that is not there', run('sim', 'fashion-mlp', '--set', f'data.path={data}'), 1, data)
    for name, magic, body in (('train-images-idx3-ubyte', b'\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02', b'\1' * 5),
                              ('train-labels-idx1-ubyte', b'\0\0\x08\x01\0\0\0\x02', b'\1\2'),
                              ('t10k-images-idx3-ubyte', b'\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02', b'\1' * 8),
                              ('t10k-labels-idx1-ubyte', b'\0\0\x08\x01\0\0\0\x02', b'\1\2')):
        with gzip.open(os.path.join(data, name + '.gz'), 'wb') as file:
            file.write(magic + body)
    check('a truncated IDX file', run('sim', 'fashion-mlp', '--set', f'data.path={data}'), 1, 'train-images')
    nowhere = os.path.join(tmp, 'no', 'x.json')
    check('a frontier that cannot be written', run('compare', 'synthetic', '--frontier', os.path.join(junk, 'x')), 1,
          'junk.safetensors')
    check('a result that cannot be written', run('sim', 'synthetic', '--json', nowhere), 1, 'x.json')


def states():
    with Swarm(2, 0) as swarm:
        peer = swarm.peers[0]
        peer.start()
        wait_for('10 steps', lambda: (peer.status() or {}).get('steps', 0) > 10)
        base = ('peer', 'synthetic', '--until-seconds', '5')
        check('a state directory in use', run(*base, '--state', peer.state), 1, peer.state, '--state')
        check('a port in use', run(*base, '--listen', peer.listen), 1, 'in use', '--listen')
        check('a status port in use', run(*base, '--status', peer.status_address), 1, 'in use', '--status')
        refused = run(*base, '--seed', peer.listen, '--set', 'run.seed=99')
        check('a peer of another run', refused, 3, 'run')
        assert peer.stop() == 0
        check("another run's state directory", run(*base, '--state', peer.state, '--set', 'run.seed=99'), 3, '--state')
        newest = os.path.join(peer.state, 'checkpoint.1')
        with open(newest, 'rb') as file:
            whole = file.read()
        flipped = whole[:5000] + bytes([whole[5000] ^ 4]) + whole[5001:]
        for name, damaged in (('truncated', whole[:len(whole) // 2]), ('bit-flipped', flipped)):
            for generation in ('checkpoint.1', 'checkpoint.2'):
                path = os.path.join(peer.state, generation)
                if os.path.exists(path):
                    os.remove(path)
            with open(newest, 'wb') as file:
                file.write(damaged)
            check(f'a {name} checkpoint', run(*base, '--state', peer.state), 1, 'checkpoint', 'move')
            with open(newest, 'rb') as file:
                assert file.read() == damaged, 'the damaged file was changed'
        # With an older whole generation, it goes on from that and says so.
        with open(os.path.join(peer.state, 'checkpoint.2'), 'wb') as file:
            file.write(whole)
        fallen_back = run('peer', 'synthetic', '--until-seconds', '1', '--state', peer.state)
        check('a damaged newest checkpoint beside a whole older one', fallen_back, 0, 'checkpoint')


if __name__ == '__main__':
    peers.RUMOR = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix='rumor-test-') as directory:
        usage(directory)
        files(directory)
    states()
    sys.exit(1 if failures else 0)
