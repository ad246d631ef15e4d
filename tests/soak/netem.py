#!/usr/bin/env python3
"""Daemons on a network that the kernel makes bad: loss, delay, reordering and a narrow link, below TCP.

usage: netem.py RUMOR [--minutes 2] [--peers 4] [--seed 1]

Runs itself again in a network namespace of its own (root, or user namespaces), whose loopback is shaped by `tc netem`.
Where the kernel has no netem it says so and only narrows the link (tbf); where no namespace can be made it says so and
ends with status 77: nothing was tested. A kill -9 every 5 s goes on meanwhile.

All peers share one loopback: a daemon listens on loopback alone unless it can refuse strangers, so links of different
quality to different peers are the chaos proxy's and the simulator's business.
"""
import os
import shutil
import subprocess
import sys
import time

from storm import Storm, arguments

INSIDE = 'RUMOR_NETEM_INSIDE'
SKIPPED = 77
SHAPES = [
    ('loss, delay, reordering', ['netem', 'delay', '20ms', '10ms', 'loss', '1%', 'reorder', '5%', 'duplicate', '0.5%']),
    ('a narrow link', ['tbf', 'rate', '20mbit', 'burst', '16k', 'latency', '200ms']),
]


def enter_namespace():
    """Replaces this process by one in its own network namespace; comes back only when that cannot be."""
    flags = '-n' if os.geteuid() == 0 else '-rn'
    missing = [tool for tool in ('unshare', 'ip', 'tc') if not shutil.which(tool)]
    if missing or subprocess.run(['unshare', flags, 'true'], check=False, capture_output=True).returncode != 0:
        print(f'not tested: {"no " + ", ".join(missing) if missing else "network namespaces are not permitted"} here')
        sys.exit(SKIPPED)
    os.environ[INSIDE] = '1'
    os.execvp('unshare', ['unshare', flags, sys.executable, *sys.argv])


def shape():
    """Shapes our own loopback; what it could do, in words."""
    subprocess.run(['ip', 'link', 'set', 'lo', 'mtu', '1500', 'up'], check=True)
    for what, rule in SHAPES:
        done = subprocess.run(['tc', 'qdisc', 'replace', 'dev', 'lo', 'root', *rule], check=False, capture_output=True,
                              text=True)
        if done.returncode == 0:
            return f'{what}: tc {" ".join(rule)}'
        print(f'not possible here, {rule[0]}: {done.stderr.strip().splitlines()[0]}')
    print('not tested: the kernel has neither netem nor tbf')
    sys.exit(SKIPPED)


def main():
    options = arguments(__doc__, 2, 4, every=(5.0, 'seconds between two kills'))
    if INSIDE not in os.environ:
        enter_namespace()
    print(f'shaped: {shape()}')
    with Storm(options, proxied=False) as storm:
        storm.start().await_links(60)
        next_kill = time.monotonic() + options.every
        while storm.rages():
            if time.monotonic() >= next_kill:
                next_kill += options.every
                victim = storm.chaos.chance.randrange(storm.count)
                storm.strike(victim, lose_state=False)
                storm.start(victim)
            time.sleep(0.05)
        # On a lossy link 0.1 s may be too short for the last words of a killed process.
        storm.verdict(60, all_shared=False)


if __name__ == '__main__':
    main()
