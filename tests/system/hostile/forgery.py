"""Updates that are forged, altered, replayed or of another run: a daemon takes none of them and names who brought them.

usage: forgery.py RUMOR

Two daemons of one run that know nothing of each other. Visitors made by hand (hostile_peer.py) carry an update of the
one to the other: as it is, which is welcome, and in every way that is not.
"""
import dataclasses
import hashlib
import os
import struct
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import peers  # noqa: E402
from hostile_peer import (DATA, HELLO, PING, STREAM, WANT, Closed, Identity, Wire, fields, hello,  # noqa: E402
                          number, ranges, read_varint, stream_def, varint)
from peers import Swarm, wait_for  # noqa: E402

PONG = 5


@dataclasses.dataclass
class Update:
    """What STREAM and DATA say of one."""
    stream: bytes
    origin: bytes
    seq: int
    period: int
    samples: int
    fingerprint: bytes
    signature: bytes
    payload: bytes

    def but(self, **changed):
        return dataclasses.replace(self, **changed)

    def signed(self, identity, run):
        message = (b'rumor-update-v1\0' + run + self.stream + struct.pack('<Q', self.seq) +
                   hashlib.sha256(self.payload).digest() + self.fingerprint +
                   struct.pack('<QI', self.period, self.samples))
        return self.but(signature=identity.sign(message))

    def frames(self):
        return (stream_def(0, self.stream, self.origin),
                bytes([DATA]) + b''.join(map(varint, (0, self.seq, self.period, self.samples))) + self.fingerprint +
                self.signature + b'\0' + self.payload)


class Visitor:
    """A peer made by hand, let in by a daemon."""

    def __init__(self, directory, peer):
        self.peer, self.identity = peer, Identity(directory)
        self.connect()

    def connect(self):
        self.wire = Wire(self.peer.listen, self.identity)
        self.run = dict(fields(self.wire.await_frame(HELLO)[1:]))[3]
        self.wire.send(hello(self.identity, self.run, self.identity.stream()))

    def fetch(self):
        """The first update that the daemon announces."""
        while True:
            named = dict(fields(self.wire.await_frame(STREAM)[1:]))
            if named[2][8:] == hashlib.sha256(b'rumor-stream-v1\0' + self.peer.node + named[2][:8]).digest()[:8]:
                break
        self.wire.send(stream_def(0, named[2]), ranges(WANT, [(0, 1, 1)]))
        body, at = self.wire.await_frame(DATA), 1
        numbers = []
        for _ in range(4):
            value, at = read_varint(body, at)
            numbers.append(value)
        assert body[at + 72] == 0, 'canonical, and in one piece'
        return Update(named[2], self.peer.node, *numbers[1:], body[at:at + 8], body[at + 8:at + 72], body[at + 73:])

    def is_linked(self):
        self.wire.send(bytes([PING]) + number(1, 77))
        return self.wire.await_frame(PONG) is not None

    def is_thrown_out(self, reason):
        """Closed, named with the reason, and not let in again."""
        brief = self.identity.node.hex()[:8]

        def named():
            return [line for line in self.peer.said().splitlines()
                    if brief in line and reason in line and 'is not linked for an hour' in line]
        wait_for(f'{brief} named for "{reason}"', named, 10)
        try:
            self.connect()
        except Closed:
            return True
        return False


def main():
    with Swarm(2, 0, 'exchange.period_ms=20', 'run.samples=10000000') as swarm, \
            tempfile.TemporaryDirectory(prefix='rumor-forgery-') as directory:
        source, target = swarm.peers
        for peer in swarm.peers:
            peer.seeds = []
            peer.start()
            wait_for('training', lambda p=peer: (s := p.status()) and s['steps'] > 3)
            peer.node = bytes.fromhex(peer.status()['node_id'])
        update = Visitor(directory, source).fetch()
        run = Visitor(directory, target).run
        other_run = bytes(byte ^ 1 for byte in run)

        def traffic():
            return target.status()['traffic']

        def bring(changed):
            visitor = Visitor(directory, target)
            visitor.wire.send(*changed(visitor).frames())
            return visitor
        last = update.payload[-1] ^ 1
        cases = {
            'altered payload': lambda _: update.but(payload=update.payload[:-1] + bytes([last])),
            'altered header': lambda _: update.but(samples=update.samples + 1),
            'replayed under another number': lambda _: update.but(seq=update.seq + 1),
            'forged in the name of another': lambda v: update.signed(v.identity, run),
            'of another run': lambda v: update.but(stream=v.identity.stream(), origin=v.identity.node).signed(
                v.identity, other_run),
        }
        for count, (name, change) in enumerate(cases.items(), 1):
            assert bring(change).is_thrown_out('is not signed by'), f'{name}: it came back'
            wait_for(f'the count of {name}', lambda c=count: traffic()['updates_invalid'] == c)
            assert traffic()['updates_received'] == 0, f'{name}: {traffic()}'
            print(name, 'refused')
        assert bring(lambda v: update.but(origin=v.identity.node)).is_thrown_out('names another origin')
        print('stolen stream refused')
        for received, duplicates in ((1, 0), (1, 1)):  # the update itself, and then again
            visitor = bring(lambda _: update)
            assert visitor.is_linked()
            wait_for('the update', lambda r=received, d=duplicates: (
                (t := traffic())['updates_received'] == r and t['updates_duplicate'] == d))
        print('the update itself is welcome, once')
        for peer in swarm.peers:
            assert peer.stop() == 0, f'peer {peer.index} did not end cleanly'


if __name__ == '__main__':
    peers.RUMOR = os.path.abspath(sys.argv[1])
    main()
    print('ok')
