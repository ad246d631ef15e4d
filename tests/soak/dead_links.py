#!/usr/bin/env python3
"""How soon dead links are replaced: some closed, some silent, as both ends show in /status (renewed every 0.25 s).

usage: dead_links.py RUMOR [--minutes 2] [--peers 5] [--seed 1]

Links are spoiled one after another, each when it is 11 s old at least: one that dies younger is redialled more slowly
on purpose (PROTOCOL.md 5.6). Demands: 99 % of the closed ones replaced within 2 s, all silent ones within 20 s.
"""
import itertools
import json
import time

from storm import Replacement, Storm, arguments

AGE_S = 11


def share(sorted_values, part):
    return round(sorted_values[min(len(sorted_values) - 1, int(part * len(sorted_values)))], 2)


class Watch:
    def __init__(self, storm):
        self.storm, self.under_way = storm, []
        self.pairs = {pair: time.monotonic() for pair in itertools.combinations(range(storm.count), 2)}
        self.times = {'closed': [], 'silent': []}

    def spoil(self):
        ready = [pair for pair, since in self.pairs.items() if time.monotonic() - since > AGE_S]
        if not ready:
            return
        pair = self.storm.chaos.chance.choice(ready)
        if not all(self.storm.link_of(*end) for end in (pair, pair[::-1])):
            return
        kind = self.storm.chaos.chance.choice(['closed', 'closed', 'silent'])
        self.under_way.append((kind, pair, Replacement(self.storm, *pair)))
        del self.pairs[pair]
        for wire in self.storm.chaos.all_between(*pair):
            (self.storm.chaos.reset if kind == 'closed' else self.storm.chaos.swallow)(wire)

    def look(self):
        for entry in list(self.under_way):
            kind, pair, replacement = entry
            if replacement.done():
                self.under_way.remove(entry)
                self.times[kind].append(replacement.seconds)
                self.pairs[pair] = time.monotonic()
            elif time.monotonic() - replacement.start > 60:
                raise AssertionError(f'a {kind} link between {pair} was not replaced in 60 s: '
                                     f'{[self.storm.link_of(*end) for end in (pair, pair[::-1])]}')


def main():
    options = arguments(__doc__, 2, 5)
    with Storm(options, proxied=True) as storm:
        storm.start().await_links(60)
        watch = Watch(storm)
        while storm.rages() or watch.under_way:
            watch.look()
            if storm.rages() and len(watch.under_way) < 3:
                watch.spoil()
            time.sleep(0.05)
        figures = {}
        for kind, values in watch.times.items():
            values.sort()
            figures[kind] = {'links': len(values), 'p50_s': share(values, 0.5), 'p99_s': share(values, 0.99),
                             'max_s': round(values[-1], 2)}
        print(json.dumps(figures))
        assert figures['closed']['p99_s'] <= 2 and figures['silent']['max_s'] <= 20, figures
        storm.verdict(60)


if __name__ == '__main__':
    main()
