"""A peer made by hand, for the flood: a key, TLS and frames as gossip/PROTOCOL.md has them, and no manners.

Python's standard library, and the libcrypto that it uses itself, for keys and signatures.
"""
import base64
import ctypes
import ctypes.util
import hashlib
import os
import select
import socket
import ssl
import struct
import time

HELLO, REJECT, BYE, PING, PEERS, STREAM, HAVE, WANT, SUBSCRIBE = 1, 2, 3, 4, 6, 7, 8, 9, 10
DATA, DIGEST, VECTOR, NOT_AVAILABLE, SNAPSHOT_ASK, SNAPSHOT_OFFER = 11, 12, 13, 14, 15, 16
SNAPSHOT_WANT, SNAPSHOT_DATA, DATA_MORE = 17, 18, 22

_crypto = ctypes.CDLL(ctypes.util.find_library('crypto') or 'libcrypto.so.3')
_ED25519 = 1087
for _name in ('EVP_PKEY_new_raw_private_key', 'EVP_MD_CTX_new', 'X509_new', 'X509_getm_notBefore', 'X509_getm_notAfter',
              'X509_gmtime_adj'):
    getattr(_crypto, _name).restype = ctypes.c_void_p


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def number(field, value):
    return varint(field << 3) + varint(value) if value else b''


def blob(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, values):
    return blob(field, b''.join(map(varint, values)))


def fields(body):
    """A protobuf message as [(field, value)]; numbers of fixed size come as bytes."""
    found, at = [], 0
    while at < len(body):
        tag, at = read_varint(body, at)
        if tag & 7 == 0:
            value, at = read_varint(body, at)
        else:
            size, at = (8, at) if tag & 7 == 1 else read_varint(body, at)
            value, at = body[at:at + size], at + size
        found.append((tag >> 3, value))
    return found


def unpack_varints(data):
    values, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        values.append(value)
    return values


class Identity:
    """An Ed25519 key, and the self-signed certificate that carries it."""

    def __init__(self, directory):
        seed = os.urandom(32)
        self._key = ctypes.c_void_p(_crypto.EVP_PKEY_new_raw_private_key(_ED25519, None, seed, 32))
        raw, size = ctypes.create_string_buffer(32), ctypes.c_size_t(32)
        _crypto.EVP_PKEY_get_raw_public_key(self._key, raw, ctypes.byref(size))
        self.node = raw.raw
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.set_alpn_protocols(['rumor/1'])
        path = os.path.join(directory, self.node.hex())
        key_der = bytes.fromhex('302e020100300506032b657004220420') + seed
        with open(path, 'w', encoding='ascii') as file:
            for name, der in (('PRIVATE KEY', key_der), ('CERTIFICATE', self._certificate())):
                file.write(f'-----BEGIN {name}-----\n{base64.encodebytes(der).decode()}-----END {name}-----\n')
        self.context.load_cert_chain(path)
        os.unlink(path)

    def _certificate(self):
        x509 = ctypes.c_void_p(_crypto.X509_new())
        _crypto.X509_set_version(x509, ctypes.c_long(2))
        for time_of, offset in ((_crypto.X509_getm_notBefore, 0), (_crypto.X509_getm_notAfter, 86400)):
            _crypto.X509_gmtime_adj(ctypes.c_void_p(time_of(x509)), ctypes.c_long(offset))
        _crypto.X509_set_pubkey(x509, self._key)
        _crypto.X509_sign(x509, self._key, None)
        out = ctypes.create_string_buffer(_crypto.i2d_X509(x509, None))
        _crypto.i2d_X509(x509, ctypes.byref(ctypes.c_void_p(ctypes.addressof(out))))
        return out.raw

    def sign(self, message):
        context = ctypes.c_void_p(_crypto.EVP_MD_CTX_new())
        out, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        _crypto.EVP_DigestSignInit(context, None, None, None, self._key)
        done = _crypto.EVP_DigestSign(context, out, ctypes.byref(size), message, ctypes.c_size_t(len(message)))
        _crypto.EVP_MD_CTX_free(context)
        assert done == 1
        return out.raw

    def stream(self):
        """A stream of this node, another one each time."""
        random = os.urandom(8)
        return random + hashlib.sha256(b'rumor-stream-v1\0' + self.node + random).digest()[:8]

    def record(self, run, count=1):
        message = b'rumor-record-v1\0' + run + self.node + struct.pack('<Q', count) + b'\0'
        return blob(1, self.node) + number(2, count) + blob(4, self.sign(message))


def hello(identity, run, stream, lonely=True):
    """The digest is of an empty replica, or nearly."""
    digest = blob(1, bytes(32)) + b'\x11' + bytes(8) + b'\x21' + bytes(8)
    return (bytes([HELLO]) + number(1, 1) + number(2, 1) + blob(3, run) + blob(4, b'flood') + blob(5, stream) +
            blob(6, identity.record(run)) + blob(7, digest) + number(8, int(lonely)) + number(9, 1))


def stream_def(index, stream, origin=b''):
    return bytes([STREAM]) + number(1, index) + blob(2, stream) + (blob(3, origin) if origin else b'')


def have(keys):
    return bytes([HAVE]) + packed(1, [k[0] for k in keys]) + packed(2, [k[1] for k in keys])


def ranges(kind, list_of):
    """[(stream index, first, count)]"""
    return bytes([kind]) + b''.join(packed(f, [r[f - 1] for r in list_of]) for f in (1, 2, 3))


def vector(streams, flags):
    """{id: [(gap, length - 1)]}, as they go onto the wire."""
    out = [bytes([VECTOR, flags]), varint(len(streams))]
    for stream in sorted(streams):
        out += [stream, varint(len(streams[stream]))] + [varint(a) + varint(b) for a, b in streams[stream]]
    return b''.join(out)


def frame(body):
    return struct.pack('<I', len(body)) + body


class Closed(Exception):
    pass


class Wire:
    """One connection; every call may raise Closed. `seen`: frames by type; `streams`: those the other end has named."""

    def __init__(self, address, identity):
        host, port = address.rsplit(':', 1)
        self.identity, self.seen, self.streams, self.buffer = identity, {}, [], bytearray()
        try:
            raw = socket.create_connection((host, int(port)), timeout=5)
            self.socket = identity.context.wrap_socket(raw)
        except OSError as error:
            raise Closed(str(error)) from error

    def send(self, *bodies):
        self.send_raw(b''.join(frame(body) for body in bodies))

    def send_raw(self, data):
        try:
            self.socket.settimeout(5)
            self.socket.sendall(data)
        except OSError as error:
            raise Closed(str(error)) from error

    def hear(self, seconds=0.0):
        """Frames that have come; waits for the first that long."""
        end = time.monotonic() + seconds
        got = []
        while not got:
            left = max(0, end - time.monotonic())
            if not self.socket.pending() and not select.select([self.socket], [], [], left)[0]:
                return got
            try:
                self.socket.settimeout(1)
                data = self.socket.recv(1 << 16)
            except (TimeoutError, ssl.SSLWantReadError):
                continue
            except OSError as error:
                raise Closed(str(error)) from error
            if not data:
                raise Closed('closed by the other end')
            self.buffer += data
            got = self._cut()
        return got

    def _cut(self):
        got, at = [], 0
        while len(self.buffer) - at >= 4:
            size = struct.unpack_from('<I', self.buffer, at)[0]
            if len(self.buffer) - at - 4 < size:
                break
            got.append(bytes(self.buffer[at + 4:at + 4 + size]))
            self.seen[got[-1][0]] = self.seen.get(got[-1][0], 0) + 1
            if got[-1][0] == STREAM:
                self.streams.append(dict(fields(got[-1][1:]))[2])
            at += 4 + size
        del self.buffer[:at]
        return got

    def await_frame(self, kind, seconds=5):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for body in self.hear(0.2):
                if body[0] == kind:
                    return body
        raise Closed(f'no frame of type {kind}')

    def close(self):
        try:
            self.socket.close()
        except OSError:
            pass
