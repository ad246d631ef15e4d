"""What hostile peers do to a daemon. Each takes a Wire that has been let in, and goes on until it raises Closed or `go`
says that it is over; strangers, whom nobody lets in, do with a connection what they can."""
import hashlib
import os
import random
import select
import socket
import ssl
import struct
import time

from hostile_peer import (DATA, DATA_MORE, DIGEST, NOT_AVAILABLE, PEERS, PING, SNAPSHOT_ASK, SNAPSHOT_DATA,
                          SNAPSHOT_OFFER, SNAPSHOT_WANT, SUBSCRIBE, WANT, Closed, Identity, blob, fields, frame,
                          have, number, packed, ranges, stream_def, unpack_varints, varint, vector)

PIECE = 64 << 10


# ---- of those who are let in ----

def many_streams(wire, go, _run):
    """Names streams that nobody has."""
    index = 0
    while go():
        wire.send(*(stream_def(index + i, os.urandom(16)) for i in range(500)))
        index += 500
        wire.hear()


def wide_vectors(wire, go, _run):
    """Claims 40,000 streams at a time, in vectors that go on."""
    while go():
        wire.send(vector({os.urandom(16): [(0, 0)] for _ in range(16_000)}, 1))
        wire.hear()


def ragged_vectors(wire, go, _run):
    """Claims every other update of a stream, a million ranges in a vector; and asks for an answer each time."""
    while go():
        stream = os.urandom(16)
        for part in range(60):
            first = 0 if part == 0 else part * 2 * 16_384
            wire.send(vector({stream: [(first, 0)] + [(0, 0)] * 16_383}, 1))
            wire.hear()
        wire.send(vector({stream: [(5, 0)]}, 2))
        wire.hear(1)


def false_news(wire, go, _run):
    """Announces what it does not have, and says so when it is asked."""
    wire.send(stream_def(0, wire.identity.stream()))
    seq = 1
    while go():
        wire.send(have([(0, seq + i) for i in range(512)]))
        seq += 512
        for body in wire.hear(0.05):
            if body[0] == WANT:  # theirs is the numbering of the stream; there is one
                lists = dict(fields(body[1:]))
                asked = list(zip(unpack_varints(lists.get(2, b'')), unpack_varints(lists.get(3, b''))))
                wire.send(ranges(NOT_AVAILABLE, [(0, first, count) for first, count in asked]))


def silence(wire, go, _run):
    """Announces what it does not have, and never answers."""
    stream = wire.identity.stream()
    wire.send(stream_def(0, stream, wire.identity.node))
    seq = 1
    while go():
        wire.send(have([(0, seq + i) for i in range(512)]))
        seq += 512
        wire.hear(0.2)


def data_head(seq, more):
    return (bytes([DATA]) + varint(0) + varint(seq) + varint(1) + varint(16) + bytes(8) + bytes(64) +
            bytes([0x80 if more else 0]))


def endless_update(wire, go, _run):
    """An update that goes on beyond every limit."""
    wire.send(stream_def(0, wire.identity.stream(), wire.identity.node), data_head(1, True) + bytes(PIECE))
    while go():
        wire.send(bytes([DATA_MORE, 1]) + bytes(PIECE))
        wire.hear()


def unfinished_update(wire, go, _run):
    """The longest update that is allowed, but for its end."""
    wire.send(stream_def(0, wire.identity.stream(), wire.identity.node), data_head(1, True) + bytes(PIECE))
    for _ in range(126):
        wire.send(bytes([DATA_MORE, 1]) + bytes(PIECE))
    while go():
        wire.send(bytes([PING]) + number(1, 5))
        wire.hear(1)


def forged_update(wire, go, _run):
    wire.send(stream_def(0, wire.identity.stream(), wire.identity.node), data_head(1, False) + b'\xff' * 500)
    while go():
        wire.hear(0.5)


def long_frames(wire, go, _run):
    """The longest frames there are, of a type that may be skipped."""
    body = frame(bytes([200]) + bytes((1 << 20) - 1))
    while go():
        wire.send_raw(body)
        wire.hear()


def trickled_frame(wire, go, _run):
    """The longest frame there is, a byte at a time."""
    wire.send_raw(struct.pack('<I', 1 << 20) + bytes([200]))
    while go():
        wire.send_raw(b'x')
        wire.hear(0.05)


def fastest(body):
    def attack(wire, go, _run):
        many = frame(body) * 2000
        while go():
            wire.send_raw(many)
            while wire.hear():
                pass
    return attack


def wants_unread(wire, go, _run):
    """Asks for all there is, as often as it can, and reads none of it."""
    while go() and not wire.streams:
        wire.hear(1)
    theirs = wire.streams + [os.urandom(16)]
    many = b''.join(frame(stream_def(i, stream)) + frame(bytes([SUBSCRIBE]) + number(1, i) + number(2, 1))
                    for i, stream in enumerate(theirs))
    wire.send_raw(many)
    wants = b''.join(frame(ranges(WANT, [(i, 1, 512)])) for i in range(len(theirs)))
    while go():
        wire.send_raw(wants)
        time.sleep(0.01)


def crowd(wire, go, run, directory):
    """Signed records of members that do not exist."""
    while go():
        records = [Identity(directory).record(run) for _ in range(16)]
        wire.send(bytes([PEERS]) + b''.join(blob(1, record) for record in records))
        wire.hear()


def snapshot_bomb(wire, go, _run):
    """Claims much, lets it be asked for as a snapshot, and gives one whose chunks swell to 128 MiB."""
    stream = wire.identity.stream()
    real, asked_at = None, 0
    manifest, offer_number = b'', 77
    bomb = b'\x01' + b'\x28\xb5\x2f\xfd\xa0' + struct.pack('<I', 128 << 20) + b''.join(
        struct.pack('<I', (128 << 10) << 3 | 2 | (i == 1023))[:3] + b'\0' for i in range(1024))
    while go():
        if not manifest and time.monotonic() > asked_at + 1:  # others may be served just now
            asked_at = time.monotonic()
            wire.send(bytes([SNAPSHOT_ASK]))
        for body in wire.hear(0.2):
            lists = dict(fields(body[1:])) if body[0] not in (DATA, DATA_MORE, SNAPSHOT_DATA, 13) else {}
            if body[0] == SNAPSHOT_OFFER and lists.get(1):
                real = lists[1]
                wire.send(bytes([SNAPSHOT_WANT]) + number(1, real))
            elif body[0] == SNAPSHOT_DATA and real:
                manifest += body[10:]
                if not body[9] & 1:
                    manifest = renamed(manifest, stream)
                    wire.send(bytes([SNAPSHOT_WANT]) + number(1, real) + number(3, 1),
                              vector({stream: [(0, 99_999)]}, 0))
                    real = None
            elif body[0] == WANT:
                asked = list(zip(unpack_varints(lists.get(2, b'')), unpack_varints(lists.get(3, b''))))
                wire.send(stream_def(0, stream), ranges(NOT_AVAILABLE, [(0, f, c) for f, c in asked]))
            elif body[0] == SNAPSHOT_ASK:
                size = struct.unpack_from('<Q', manifest)[0] if manifest else 1 << 20
                wire.send(bytes([SNAPSHOT_OFFER]) + number(1, offer_number) +
                          blob(2, hashlib.sha256(manifest).digest()) + number(3, size) + number(4, 100_000) +
                          number(5, 500) + number(7, len(manifest)))
            elif body[0] == SNAPSHOT_WANT and not lists.get(3):
                part = lists.get(2, 0)
                data = manifest if part == 0 else bomb
                for at in range(0, len(data), PIECE):
                    more = at + PIECE < len(data)
                    wire.send(bytes([SNAPSHOT_DATA]) + struct.pack('<II', offer_number, part) + bytes([more]) +
                              data[at:at + PIECE])


def renamed(manifest, stream):
    """The same with one stream of ours for all names: bytes, head, names, hashes."""
    size = struct.unpack_from('<Q', manifest)[0]
    at, shift, head = 8, 0, 0
    while True:
        head |= (manifest[at] & 0x7f) << shift
        shift, at = shift + 7, at + 1
        if manifest[at - 1] < 0x80:
            break
    chunk = 512
    while chunk * 64 < size and chunk < 1 << 20:
        chunk *= 2
    hashes = manifest[len(manifest) - 32 * ((size - 1) // chunk + 1):]
    names = varint(1) + stream + varint(1) + varint(0) + varint(99_999)
    return manifest[:at + head] + names + hashes


ATTACKS = {
    'many_streams': many_streams, 'wide_vectors': wide_vectors, 'ragged_vectors': ragged_vectors,
    'false_news': false_news, 'silence': silence, 'endless_update': endless_update,
    'unfinished_update': unfinished_update, 'forged_update': forged_update, 'long_frames': long_frames,
    'trickled_frame': trickled_frame, 'pings': fastest(bytes([PING]) + number(1, 7)),
    'digests': fastest(bytes([DIGEST]) + blob(1, bytes(32)) + b'\x11' + bytes(8) + b'\x21' + bytes(8) + number(6, 1)),
    'vector_questions': fastest(bytes([13, 2, 0])), 'wants_unread': wants_unread, 'snapshot_bomb': snapshot_bomb,
    'snapshot_asks': fastest(bytes([SNAPSHOT_ASK])), 'crowd': crowd,
}
# Those that an honest peer with a bad network might be guilty of as well, or that cost what is set aside for them and
# no more: nobody is named for these, and this is why that does no harm.
HARMLESS = {
    'trickled_frame': 'a link that brings no whole frame for 15 s is closed as a silent one: it costs a place among '
                      'the links, which goes to who gives more, and the bytes that have come',
    'crowd': 'each record is paid for, and the table ends at 4,096 of them: 2 MiB, whatever comes',
}
# Rounds of an attack after which it goes beyond a bound at the latest, with what waits in the buffers of a connection.
ROUNDS_MIN = 20
ROUNDS = {'endless_update': 130, 'forged_update': 4, 'unfinished_update': 1, 'wide_vectors': 6, 'ragged_vectors': 1,
          'false_news': 100, 'wants_unread': 200, 'long_frames': 8, 'pings': 200, 'digests': 200,
          'vector_questions': 200, 'snapshot_asks': 200}
# Seconds of being linked after which the others are noticed at the latest, where these are more than a few: by how
# many asks a link may let run out, how long the end of an update is awaited, how many announcements may be broken. Also
# for a daemon that has half a core.
NOTICED_WITHIN = {'silence': 90, 'unfinished_update': 65, 'false_news': 60, 'snapshot_bomb': 20, 'ragged_vectors': 20,
                  'wants_unread': 20}


# ---- of strangers ----

def client_hello():
    """The first flight of a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(['rumor/1'])
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def half_handshake(address, go):
    """Connects, sends a handshake byte by byte, or half of it, or nothing, and waits; counts the connections."""
    host, port = address.rsplit(':', 1)
    count = 0
    while go():
        try:
            with socket.create_connection((host, int(port)), timeout=2) as raw:
                count += 1
                first = client_hello()
                kind = random.randrange(3)
                for at in range(len(first) // 2 if kind != 2 else 0):
                    if not go():
                        break
                    raw.send(first[at:at + 1])
                    if select.select([raw], [], [], 0.1 if kind else 0)[0] and not raw.recv(4096):
                        break
                end = time.monotonic() + 6
                while go() and time.monotonic() < end and not select.select([raw], [], [], 0.2)[0]:
                    pass
        except OSError:
            time.sleep(0.05)
    return count


def bomb_before_greeting(wire, go, _run):
    wire.send_raw(struct.pack('<I', 1 << 20) + b'\x01')
    while go():
        wire.send_raw(bytes(4096))
        wire.hear(0.01)


def says_nothing(wire, go, _run):
    while go():
        wire.hear(0.5)


def greets(wire, go, run, hello):
    wire.send(hello(wire.identity, run, wire.identity.stream()))
    while go():
        wire.hear(0.5)


__all__ = ['ATTACKS', 'HARMLESS', 'NOTICED_WITHIN', 'ROUNDS', 'ROUNDS_MIN', 'Closed', 'bomb_before_greeting', 'greets',
           'half_handshake', 'packed', 'says_nothing']
