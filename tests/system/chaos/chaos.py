"""A chaos proxy for real daemons: every link of a swarm passes through it, and it misbehaves as told.

Each peer gets a *front*, a listening port of ours that leads to the peer's own. Peers advertise their fronts (run-file
key network.advertise) and are seeded with fronts, so that nobody knows a way around. A connection through a front is a
Wire with a caller and a callee; the caller is found from the connection's port (/proc, so Linux only), which lets links
between two given peers, or between two groups, be treated alike.

What a wire can suffer:
  reset     both ends get RST                     stall     bytes wait here until resume(); TCP itself stays healthy
  swallow   bytes vanish, in both directions,     flip      one bit of what passes next is inverted
            and so does the end of the stream     segment   each byte leaves as a segment of its own
  throttle  so many bytes a second
What a new connection can meet (Chaos.rule): 'pass', 'refuse' (RST at once) or 'swallow' (accepted and never answered: a
half-open link).

Chance comes from a seed; when things happen depends on the daemons and on the machine all the same. One thread runs
the event loop; every public method of Chaos may be called from any other thread.
"""
import asyncio
import contextlib
import os
import random
import socket
import struct
import threading
import time

PASS, REFUSE, SWALLOW = 'pass', 'refuse', 'swallow'
CHUNK = 16 << 10


def socket_owner(port, front, pids):
    """Whose of `pids` (index -> pid) is the loopback TCP socket from this port to that one; None if nobody's. A socket
    to another port may have the same port of its own."""
    inode = None
    with open('/proc/self/net/tcp', encoding='ascii') as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            ends = [int(end.split(':')[1], 16) for end in fields[1:3]]
            if ends == [port, front] and fields[9] != '0':
                inode = f'socket:[{fields[9]}]'
    if inode is None:
        return None
    for index, pid in pids.items():
        if inode in open_files(pid):
            return index
    return None


def open_files(pid):
    """What a process has open, but for what it closes meanwhile."""
    links = set()
    try:
        for entry in os.scandir(f'/proc/{pid}/fd'):
            with contextlib.suppress(OSError):
                links.add(os.readlink(entry.path))
    except OSError:
        pass  # a process that has just gone
    return links


class Wire:
    """One connection through the proxy. Way 0 is from caller to callee, way 1 back."""

    def __init__(self, caller, callee, near):
        self.caller, self.callee = caller, callee
        self.near, self.far = near, None
        self.gate = asyncio.Event()
        self.gate.set()
        self.swallow = False
        self.segment = False
        self.bytes_per_second = None
        self.flip_at = [None, None]  # so many bytes from now
        self.flipped = False
        self.bytes = [0, 0]  # forwarded
        self.tasks = []

    def between(self, one, other):
        return {self.caller, self.callee} == {one, other}

    def damaged(self, data, way, chance):
        at = self.flip_at[way]
        if at is None:
            return data
        if at >= len(data):
            self.flip_at[way] = at - len(data)
            return data
        self.flip_at[way], self.flipped = None, True
        changed = bytearray(data)
        changed[at] ^= 1 << chance.randrange(8)
        return bytes(changed)


def close_with_reset(*sockets):
    for one in sockets:
        if one is None:
            continue
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        except OSError:
            pass
        one.close()


class Chaos:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.seed = seed
        self.pids = {}
        self.wires = []
        self.counts = {'connections': 0, 'resets': 0, 'flips': 0, 'refused': 0, 'swallowed': 0}
        self._fronts, self._tasks = [], set()
        self._rule = lambda caller, callee: PASS
        self._prepare = lambda wire: None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    # ---- from the test's thread ----

    def _call(self, function, *args):
        async def run():
            return function(*args)
        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)

    def front(self, index, target):
        """Opens a front for peer `index`, which listens at port `target`; the front's port."""
        listener = socket.socket()
        listener.bind(('127.0.0.1', 0))
        listener.listen(256)
        listener.setblocking(False)
        self._fronts.append(listener)
        self._call(lambda: self._spawn(self._accept(listener, index, target)))
        return listener.getsockname()[1]

    def know(self, index, pid):
        """Peer `index` now runs as process `pid`: call it after each start."""
        self.pids[index] = pid

    def rule(self, of_new):
        """What new connections meet from now on: of_new(caller, callee) is one of PASS, REFUSE, SWALLOW."""
        self._call(setattr, self, '_rule', of_new)

    def prepare(self, of_new):
        """of_new(wire) is called on each new wire before a byte has passed."""
        self._call(setattr, self, '_prepare', of_new)

    def heal(self):
        """New connections pass untouched; stalled wires go on, swallowing ones end: their streams have holes."""
        def all_of_it():
            self._rule, self._prepare = (lambda caller, callee: PASS), (lambda wire: None)
            for wire in list(self.wires):
                wire.segment, wire.bytes_per_second, wire.flip_at = False, None, [None, None]
                wire.gate.set()
                if wire.swallow:
                    self._reset(wire)
        self._call(all_of_it)

    def partition(self, group, how=REFUSE):
        """Cuts the peers of `group` from all others, with RST (REFUSE) or in silence (SWALLOW)."""
        def crosses(caller, callee):
            return caller is None or (caller in group) != (callee in group)

        def cut():
            self._rule = lambda caller, callee: how if crosses(caller, callee) else PASS
            for wire in list(self.wires):
                if crosses(wire.caller, wire.callee):
                    self._swallow(wire) if how == SWALLOW else self._reset(wire)
        self._call(cut)

    def pick(self, matches=lambda wire: True):
        """One established wire that matches, by chance; None when there is none."""
        def choose():
            found = [w for w in self.wires if w.far and min(w.bytes) > 0 and not w.swallow and matches(w)]
            return self.chance.choice(found) if found else None
        return self._call(choose)

    def all_between(self, one, other):
        return self._call(lambda: [w for w in self.wires if w.between(one, other)])

    def reset(self, wire):
        self._call(self._reset, wire)

    def swallow(self, wire):
        self._call(self._swallow, wire)

    def stall(self, wire):
        self._call(wire.gate.clear)

    def resume(self, wire):
        self._call(wire.gate.set)

    def flip(self, wire, way):
        self._call(wire.flip_at.__setitem__, way, self.chance.randrange(256))

    def close(self):
        def end():
            for task in list(self._tasks):
                task.cancel()
            for wire in list(self.wires):
                close_with_reset(wire.near, wire.far)
            for listener in self._fronts:
                listener.close()
        self._call(end)
        self._call(lambda: None)  # one more turn, for the cancelled tasks
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # ---- on the loop ----

    def _spawn(self, coroutine):
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _reset(self, wire):
        if wire not in self.wires:
            return
        self.counts['resets'] += 1
        self._end(wire)

    def _swallow(self, wire):
        wire.swallow = True
        self.counts['swallowed'] += 1

    def _end(self, wire):
        if wire in self.wires:
            self.wires.remove(wire)
        for task in wire.tasks:
            task.cancel()
        close_with_reset(wire.near, wire.far)

    async def _owner(self, port, front):
        """Waits a little for know(): a process may dial before this thread hears that it is there."""
        for _ in range(20):
            caller = socket_owner(port, front, self.pids)
            if caller is not None:
                return caller
            await asyncio.sleep(0.01)
        return None

    async def _accept(self, listener, index, target):
        while True:
            near, address = await self._loop.sock_accept(listener)
            near.setblocking(False)
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            caller = await self._owner(address[1], listener.getsockname()[1])
            self.counts['connections'] += 1
            verdict = self._rule(caller, index)
            if verdict == REFUSE:
                self.counts['refused'] += 1
                close_with_reset(near)
                continue
            wire = Wire(caller, index, near)
            self.wires.append(wire)
            self._prepare(wire)
            if verdict == SWALLOW:
                self._swallow(wire)
                wire.tasks = [self._spawn(self._pump(wire, 0, near, None))]
            else:
                self._spawn(self._connect(wire, target))

    async def _connect(self, wire, target):
        far = socket.socket()
        far.setblocking(False)
        try:
            await self._loop.sock_connect(far, ('127.0.0.1', target))
        except OSError:  # nobody listens there now
            far.close()
            return self._end(wire)
        if wire not in self.wires:
            return far.close()
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.far = far
        wire.tasks = [self._spawn(self._pump(wire, 0, wire.near, far)),
                      self._spawn(self._pump(wire, 1, far, wire.near))]
        return None

    async def _pump(self, wire, way, source, target):
        try:
            while data := await self._loop.sock_recv(source, CHUNK):
                await self._forward(wire, way, data, target)
            await wire.gate.wait()
            if not wire.swallow and target:
                target.shutdown(socket.SHUT_WR)
        except OSError:
            if not wire.swallow:
                return self._end(wire)
        if all(task.done() or task is asyncio.current_task() for task in wire.tasks):
            self._end(wire)
        return None

    async def _forward(self, wire, way, data, target):
        await wire.gate.wait()
        if wire.swallow or target is None:
            return
        before = wire.flipped
        data = wire.damaged(data, way, self.chance)
        self.counts['flips'] += wire.flipped and not before
        if wire.bytes_per_second:
            await asyncio.sleep(len(data) / wire.bytes_per_second)
        for piece in ([data[i:i + 1] for i in range(len(data))] if wire.segment else [data]):
            await self._loop.sock_sendall(target, piece)
        wire.bytes[way] += len(data)


def until(deadline_s):
    """Yields the seconds gone by until `deadline_s` have."""
    start = time.monotonic()
    while (gone := time.monotonic() - start) < deadline_s:
        yield gone
