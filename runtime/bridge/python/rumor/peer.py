"""Peer: librumor's functions as an object, for memory of any kind. swarm.py uses it for PyTorch models."""
from __future__ import annotations

import concurrent.futures
import ctypes
import json
import os
import weakref
from typing import Any, Callable, Sequence

from . import _library
from ._library import ALONE, BF16, ENDED, F32
from .events import Events


def _free(library: ctypes.CDLL, handle: ctypes.c_void_p, home: int, events: list[Events]) -> None:
    if os.getpid() == home:
        for one in events:
            one.stop()
        library.rumor_free(handle)


class Peer:
    """One peer of a run. Set options and memory, start(), call step() after each optimizer step, leave().

    Use it from one thread at a time. The memory must stay in place until leave() has returned."""

    def __init__(self, run: str):
        self._library = _library.load()
        self._handle = ctypes.c_void_p()
        self._check(self._library.rumor_create(run.encode(), ctypes.byref(self._handle)))
        # Runs at the end of the process at the latest: the peer's threads must not outlive the memory they use.
        self._events: list[Events] = []  # one, from start() on
        self._logs = False
        self._end = weakref.finalize(self, _free, self._library, self._handle, os.getpid(), self._events)

    def _check(self, code: int, *fine: int) -> int:
        return _library.check(self._library, code, *fine)

    def option(self, name: str, value: Any) -> None:
        """Sets an option or a key of run files, such as 'compress.density'; rumor.h lists them."""
        text = str(int(value)) if isinstance(value, bool) else str(value)
        self._check(self._library.rumor_option(self._handle, name.encode(), text.encode()))
        self._logs = text == 'events' if name == 'messages' else self._logs

    def parameter(self, name: str, shape: Sequence[int], address: int, bf16: bool = False,
                  gpu: int | None = None) -> None:
        """Adds one tensor of the model: contiguous, row-major, float32 or bfloat16. All peers use the same order.

        gpu: the number of the CUDA device that holds the memory. Work queued there must be done before each call."""
        extents = (ctypes.c_uint32 * len(shape))(*shape)
        told = self._handle, name.encode(), BF16 if bf16 else F32, len(shape), extents, address
        if gpu is None:
            self._check(self._library.rumor_parameter(*told))
        else:
            self._check(self._library.rumor_cuda_parameter(*told, gpu))

    def local(self, name: str, size: int, address: int, gpu: int | None = None) -> None:
        """Adds memory that is not trained by gradients: `size` bytes, kept in checkpoints. The option `buffers` says
        whether the peers share it."""
        told = self._handle, name.encode(), size, address
        if gpu is None:
            self._check(self._library.rumor_local(*told))
        else:
            self._check(self._library.rumor_cuda_local(*told, gpu))

    def start(self, wait: float = 30) -> bool:
        """Joins the run. Returns False if no peer answered within `wait` seconds; the peer keeps trying."""
        next_event, handle = self._library.rumor_event, self._handle
        self._events.append(Events(lambda: next_event(handle), self._logs))
        return self._interruptible(
            lambda: self._check(self._library.rumor_start(self._handle, wait), ALONE)) != ALONE

    def _interruptible(self, call: Callable[[], int]) -> int:
        """call() on another thread, so that Ctrl-C ends its wait."""
        with concurrent.futures.ThreadPoolExecutor(1, 'rumor-wait') as pool:
            try:
                done = pool.submit(call)
            except RuntimeError:  # at the end of the interpreter no thread begins
                return call()
            try:
                return done.result()
            except KeyboardInterrupt:
                self._library.rumor_interrupt(self._handle)
                raise

    def step(self, samples: int, loss: float = 0.0) -> bool:
        """Call this after each optimizer step. Returns False if the run has ended."""
        return self._check(self._library.rumor_step(self._handle, samples, loss), ENDED) != ENDED

    def warning(self) -> str | None:
        """Returns a line that the user should read, each once; None if there is nothing new."""
        text = self._library.rumor_warning(self._handle)
        return None if text is None else text.decode('utf-8', 'replace')

    def events(self) -> list[dict[str, Any]]:
        """Returns the events since the last call; rumor.h lists their fields. With the option messages=events, lines go
        to logging instead of stderr."""
        return [event for one in self._events for event in one.take()]

    def status(self) -> dict[str, Any]:
        """Returns the object that `rumor peer` serves as /status; empty before the peer has started."""
        size = ctypes.c_size_t()
        for _ in range(100):  # it may grow in between
            self._check(self._library.rumor_status(self._handle, None, 0, ctypes.byref(size)))
            room = ctypes.create_string_buffer(size.value + 256)
            if self._library.rumor_status(self._handle, room, len(room), ctypes.byref(size)) == _library.OK:
                return json.loads(room.value) if room.value else {}
        return {}

    def checkpoint(self) -> None:
        """Writes a checkpoint with the next update."""
        self._check(self._library.rumor_checkpoint(self._handle))

    def show_shared(self, shared: bool) -> None:
        """True: the memory becomes the shared weights alone. False: it becomes what is trained again."""
        self._check(self._library.rumor_show_shared(self._handle, int(shared)))

    def take_back(self) -> None:
        """Before leave(): the run shall not have what was changed in the memory since the last step()."""
        self._check(self._library.rumor_take_back(self._handle), ENDED)

    def leave(self, wait: float = 10) -> None:
        """Ends the peer. The memory then holds the run's shared weights. Waits up to `wait` seconds for the others."""
        try:
            self._interruptible(lambda: self._check(self._library.rumor_leave(self._handle, wait), ENDED))
        finally:
            for one in self._events:
                one.stop()

    def close(self) -> None:
        """Ends the peer at once, without touching the memory. Nothing else can be called then."""
        self._end()
        self._handle = ctypes.c_void_p()
