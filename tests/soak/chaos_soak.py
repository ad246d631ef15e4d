#!/usr/bin/env python3
"""All that the chaos proxy and signals can do to daemons, drawn at random for minutes; then healing, then equality.

usage: chaos_soak.py RUMOR [--minutes 10] [--peers 5] [--seed 1]

Every second or so one of: a reset, a flipped bit, a stall, silence on a link, a throttle, one-byte segments for new
links, a partition (hard or silent), half-open addresses, SIGSTOP for up to 30 s, kill -9 with or without the state
directory. All digests must be equal within 120 s of the last.
"""
import signal
import time

from storm import PASS, REFUSE, SWALLOW, Storm, arguments


class Soak:
    def __init__(self, storm):
        self.storm, self.chaos, self.chance = storm, storm.chaos, storm.chaos.chance
        self.later = []  # (when, what)
        self.done = {}

    def after(self, seconds, what):
        self.later.append((time.monotonic() + seconds, what))

    def catch_up(self):
        for entry in [e for e in self.later if e[0] <= time.monotonic()]:
            self.later.remove(entry)
            entry[1]()

    def on_wire(self, act):
        if wire := self.chaos.pick():
            act(wire)

    # ---- one fault each ----

    def reset(self):
        self.on_wire(self.chaos.reset)

    def flip(self):
        self.on_wire(lambda wire: self.chaos.flip(wire, self.chance.randrange(2)))

    def stall(self):
        def act(wire):
            self.chaos.stall(wire)
            self.after(self.chance.uniform(0.5, 20), lambda: self.chaos.resume(wire))
        self.on_wire(act)

    def silence(self):
        self.on_wire(self.chaos.swallow)

    def throttle(self):
        self.on_wire(lambda wire: setattr(wire, 'bytes_per_second', self.chance.choice([2000, 20_000, 100_000])))

    def segments(self):
        self.chaos.prepare(lambda wire: setattr(wire, 'segment', True))
        self.after(5, lambda: self.chaos.prepare(lambda wire: None))

    def half_open(self):
        deaf = self.chance.randrange(self.storm.count)
        self.chaos.rule(lambda caller, callee: SWALLOW if callee == deaf else PASS)
        self.after(self.chance.uniform(1, 10), lambda: self.chaos.rule(lambda caller, callee: PASS))

    def partition(self):
        group = set(self.chance.sample(range(self.storm.count), self.chance.randrange(1, self.storm.count)))
        self.chaos.partition(group, self.chance.choice([REFUSE, SWALLOW]))
        self.after(self.chance.uniform(2, 20), lambda: self.chaos.rule(lambda caller, callee: PASS))

    def stop(self):
        up = [p for p in self.storm.peers if p.index not in self.storm.killed]
        process = self.chance.choice(up).process
        process.send_signal(signal.SIGSTOP)
        self.after(self.chance.uniform(0.5, 30), lambda: process.poll() is None and process.send_signal(signal.SIGCONT))

    def kill(self):
        up = [i for i in range(self.storm.count) if i not in self.storm.killed]
        if len(up) < 3:
            return
        victim = self.chance.choice(up)
        self.storm.strike(victim, self.chance.random() < 0.2)
        self.after(self.chance.uniform(0, 5), lambda: self.storm.start(victim))

    def anything(self):
        acts = [self.reset, self.flip, self.stall, self.silence, self.throttle, self.segments, self.half_open,
                self.partition, self.stop, self.kill]
        act = self.chance.choice(acts)
        self.done[act.__name__] = self.done.get(act.__name__, 0) + 1
        act()


def main():
    options = arguments(__doc__, 10, 5)
    with Storm(options, proxied=True) as storm:
        storm.start().await_links(60)
        soak = Soak(storm)
        next_fault = 0.0
        while storm.rages():
            soak.catch_up()
            if time.monotonic() >= next_fault:
                next_fault = time.monotonic() + soak.chance.uniform(0.3, 2)
                soak.anything()
            time.sleep(0.05)
        for peer in storm.peers:
            peer.process.send_signal(signal.SIGCONT)
        print(f'faults: {soak.done}')
        # A peer that is killed while it is cut off takes with it what nobody else has: no loss of the swarm.
        storm.verdict(120, all_shared=False)


if __name__ == '__main__':
    main()
