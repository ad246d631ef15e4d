#!/usr/bin/env python3
"""The same model, data and optimizer on two machines with a home link between them: Rumor beside PyTorch's
DistributedDataParallel (gloo) and hivemind. Time to the same test loss, bytes on the link, and the share of the time
that goes into training.

Both ends run on this machine, in network namespaces of their own, joined by a link of tests/bench/shaped_link.py.
Fashion-MNIST, MLP, SGD; with --text FILE a GPT of 10.8 million parameters on the bytes of that file, Adam (with
--rate 0.0005, say). Time is counted from the first step. With --kill the second peer is killed (SIGKILL) at half of
the time that the way took before. hivemind is a package of PyPI; where python3 has it not, name other --ways. It
averages gradients ("hivemind") or weights ("hivemind-local"; "hivemind-behind" trains on meanwhile) as float16, each
time that both have seen --average-rows rows together. Skipped (77) without PyTorch, Fashion-MNIST or root.

Usage: rivals.py [--mbit 20] [--rtt-ms 50] [--loss 0.5] [--width 128 | --text FILE] [--ways rumor,ddp] [--kill]
                 [--average-rows 512] [--rate 0.1] [--json FILE] RUMOR LIBRARY PACKAGE
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'system' / 'bridge')]

try:
    import rival_loops
    import rival_tasks
    from torch_data import FOLDER
except ImportError:
    print('python3 has no PyTorch (python3-torch)')
    sys.exit(SKIPPED)

import shaped_link  # noqa: E402


def make_friends(rumor, folder):
    """State directories of two peers that admit each other."""
    states = [os.path.join(folder, str(rank)) for rank in (0, 1)]
    for state in states:
        subprocess.run([rumor, 'key', 'new', '--state', state], check=True, capture_output=True)
    for state in states:
        for other in states:
            key = subprocess.run([rumor, 'key', 'show', '--state', other], check=True, capture_output=True, text=True)
            subprocess.run([rumor, 'key', 'allow', f'{state}/allowed', key.stdout.split()[0]], check=True,
                           capture_output=True)


def end(process):
    """Ends it and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def attempt(options, way, kill_after=None):
    """One run. Rank 0's figures, or None when it did not come to an end."""
    with tempfile.TemporaryDirectory() as folder, \
            shaped_link.ShapedLink(options.mbit, options.rtt_ms / 2000) as link:
        make_friends(options.rumor, folder)
        command = [sys.executable, str(HERE / 'rivals.py'), *options.passed, '--way', way, '--folder', folder]
        ends = [link.popen(rank, [*command, '--rank', str(rank)], stdout=subprocess.PIPE, text=True,
                           stderr=None if options.verbose else subprocess.DEVNULL, start_new_session=True)
                for rank in (0, 1)]
        try:
            for line in ends[0].stdout:
                if line.strip() == 'begun':
                    break
            if kill_after is not None:
                time.sleep(kill_after)
                end(ends[1])
            told = ends[0].communicate(timeout=options.limit + 60)[0].splitlines()
            return {**json.loads(told[-1]), 'bytes': link.bytes()} if told and told[-1].startswith('{') else None
        except subprocess.TimeoutExpired:
            return None
        finally:
            for one in ends:
                end(one)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--mbit', type=float, default=20)
    parser.add_argument('--rtt-ms', type=float, default=50)
    parser.add_argument('--loss', type=float, default=0.5, help='on rows of the test set')
    parser.add_argument('--width', type=int, default=128, help='of both hidden layers of the MLP')
    parser.add_argument('--text', help='a file: the GPT instead of the MLP')
    parser.add_argument('--limit', type=float, default=600, help='seconds for one way')
    parser.add_argument('--density', type=float, default=0.001, help='of an update of Rumor')
    parser.add_argument('--overhead', type=float, default=0.2, help='share of the time that Rumor may take')
    parser.add_argument('--rate', type=float, default=0.1, help='of the optimizer')
    parser.add_argument('--average-rows', type=int, default=512, help='of both peers, between two averages of hivemind')
    parser.add_argument('--matchmaking', type=float, default=1, help='seconds that hivemind looks for a group')
    parser.add_argument('--ways', default='rumor,ddp', help=', '.join(rival_loops.WAYS))
    parser.add_argument('--kill', action='store_true', help='once more, with the second peer killed')
    parser.add_argument('--json')
    parser.add_argument('--verbose', action='store_true')
    for internal in ('--way', '--folder'):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    parser.add_argument('--rank', type=int, help=argparse.SUPPRESS)
    for name in ('rumor', 'library', 'package'):
        parser.add_argument(name)
    options = parser.parse_args()
    options.passed = sys.argv[1:]
    return options


def row(way, told, first):
    if told is None:
        return f'{way:>20}: did not come to an end'
    ratio = '' if told is first else (f'  {told["seconds"] / first["seconds"]:.1f} times the time, '
                                      f'{told["bytes"] / first["bytes"]:.0f} times the bytes')
    return (f'{way:>20}: {told["seconds"]:7.1f} s  {told["steps"]:6} steps  {told["bytes"] / 1e6:8.2f} MB  '
            f'trains {100 * told["trains"]:3.0f} % of the time, {100 * told["in_step"]:.0f} % in step  '
            f'loss {told["loss"]:.3f}{ratio}')


def main():
    options = parsed()
    os.environ['RUMOR_LIBRARY'] = options.library
    sys.path.insert(0, options.package)
    if options.way:
        print(json.dumps(rival_loops.run(options)), flush=True)
        return
    why = shaped_link.why_not()
    if not options.text and not FOLDER.is_dir():
        why = why or 'no Fashion-MNIST (dataset-fashion-mnist)'
    if why:
        print(f'skipped: {why}')
        sys.exit(SKIPPED)
    task = rival_tasks.make_task(options)
    print(f'{options.mbit:g} Mbit/s, {options.rtt_ms:g} ms, {task.name}, test loss {options.loss:g}, two peers, '
          f'batch {task.batch} each', flush=True)
    results, first = {}, None
    for way in options.ways.split(','):
        results[way] = attempt(options, way)
        first = first or results[way]
        print(row(way, results[way], first), flush=True)
        if options.kill and results[way]:
            results[f'{way}, killed'] = attempt(options, way, results[way]['seconds'] / 2)
            print(row(f'{way}, killed', results[f'{way}, killed'], first), flush=True)
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(results, file, indent=2)


if __name__ == '__main__':
    main()
