#!/usr/bin/env python3
"""A kill -9 every two seconds over eight daemons that train; at the end all are equal, nothing lost, nothing doubled.

usage: kill_storm.py RUMOR [--minutes 10] [--peers 8] [--seed 1] [--lose-state 0.2]

A killed daemon comes back within a second or two, one in five without its state directory, so as a stranger at an old
address. All digests must be equal within 60 s of the last kill, of which some 10 s are the rest of the training.
"""
import time

from storm import Storm, arguments


def main():
    options = arguments(__doc__, 10, 8, lose_state=(0.2, 'chance that a killed daemon loses its state directory'),
                        every=(2.0, 'seconds between two kills'))
    with Storm(options, proxied=False) as storm:
        storm.start().await_links(60)
        chance, next_kill, back = storm.chaos.chance, time.monotonic(), []
        while storm.rages():
            if time.monotonic() >= next_kill:
                next_kill += options.every
                up = [i for i in range(storm.count) if i not in storm.killed]
                victim = chance.choice(up)
                storm.strike(victim, chance.random() < options.lose_state)
                back.append((time.monotonic() + chance.uniform(0, 2), victim))
            for entry in [b for b in back if b[0] <= time.monotonic()]:
                back.remove(entry)
                storm.start(entry[1])
            time.sleep(0.05)
        storm.verdict(60)


if __name__ == '__main__':
    main()
