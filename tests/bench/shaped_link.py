"""A narrow, slow link between two network namespaces, made of two TUN devices: no netem is wanted of the kernel.

Every packet waits for the line (rate) and then travels (delay), in order, each direction by itself; what finds a full
queue is dropped, as at a router. Needs root, /dev/net/tun and `ip`.
"""
import ctypes
import fcntl
import heapq
import multiprocessing
import os
import select
import shutil
import struct
import subprocess
import time

ADDRESSES = ('10.77.0.1', '10.77.0.2')
DEVICE = 'shaped'
MTU = 1500
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000


def why_not():
    """What keeps a link from being made here; empty: nothing."""
    if os.geteuid() != 0:
        return 'root is wanted for network namespaces'
    if not shutil.which('ip') or not os.path.exists('/dev/net/tun'):
        return 'ip (iproute2) and /dev/net/tun are wanted'
    return ''


def _enter(name):
    with open(f'/run/netns/{name}', encoding='utf-8') as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f'setns {name}')


def _open_device(name, own, other):
    """In the namespace: a TUN device that is up, with its address."""
    _enter(name)
    device = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack('16sH', DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    for command in (['link', 'set', 'lo', 'up'], ['addr', 'add', own, 'peer', other, 'dev', DEVICE],
                    ['link', 'set', DEVICE, 'mtu', str(MTU), 'up']):
        subprocess.run(['ip', *command], check=True)
    return device


class _Direction:
    def __init__(self, source, target, bytes_per_second, delay, queue_bytes):
        self.source, self.target = source, target
        self.speed, self.delay, self.queue_seconds = bytes_per_second, delay, queue_bytes / bytes_per_second
        self.free_at = 0.0

    def arrival(self, packet, now):
        """When the packet gets to the other end; None: it is dropped."""
        begin = max(now, self.free_at)
        if begin - now > self.queue_seconds:
            return None
        self.free_at = begin + len(packet) / self.speed
        return self.free_at + self.delay


def _carry(names, mbit, delay, carried, ready):
    devices = [_open_device(names[i], ADDRESSES[i], ADDRESSES[1 - i]) for i in (0, 1)]
    ways = {devices[i]: _Direction(devices[i], devices[1 - i], mbit * 125e3, delay, 256e3) for i in (0, 1)}
    under_way, number = [], 0
    ready.set()
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 1.0
        for device in select.select(devices, [], [], wait)[0]:
            packet = os.read(device, MTU + 64)
            at = ways[device].arrival(packet, time.monotonic())
            if at is not None:
                number += 1
                heapq.heappush(under_way, (at, number, ways[device].target, packet))
                carried.value += len(packet)
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, target, packet = heapq.heappop(under_way)
            os.write(target, packet)


class ShapedLink:
    """with ShapedLink(20, 0.025) as link: link.popen(0, [...]), link.popen(1, [...]); link.bytes()"""

    def __init__(self, mbit, delay):
        self.names = [f'shaped-{os.getpid()}-{i}' for i in (0, 1)]
        self.carried = multiprocessing.Value('Q', 0)
        self.ready = multiprocessing.Event()
        self.process = multiprocessing.Process(target=_carry, args=(self.names, mbit, delay, self.carried, self.ready),
                                               daemon=True)

    def __enter__(self):
        for name in self.names:
            subprocess.run(['ip', 'netns', 'add', name], check=True)
        self.process.start()
        if not self.ready.wait(20):
            self.__exit__()
            raise RuntimeError('the link could not be made')
        return self

    def popen(self, end, command, **more):
        return subprocess.Popen(['ip', 'netns', 'exec', self.names[end], *command], **more)

    def bytes(self):
        """Carried so far, both ways, headers included."""
        return self.carried.value

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()
        for name in self.names:
            subprocess.run(['ip', 'netns', 'del', name], check=False)
