"""What a peer has to say: lines for logging.getLogger('rumor'), and events for the callbacks of a swarm."""
from __future__ import annotations

import collections
import json
import logging
import re
import threading
from typing import Any, Callable

LOGGER = logging.getLogger('rumor')
_LEVELS = {'warning': logging.WARNING}  # errors become exceptions or warnings of step(); here they are information
_OPTIONS = {'seed': 'seeds', 'set': 'options'}


def in_python(text: str) -> str:
    """The library's text with join()'s arguments in place of the command line's options."""
    return re.sub(r'--(seed|state|listen|status|allow|token|set)\b', lambda found: _OPTIONS.get(found[1], found[1]),
                  text)


class Events:
    """Takes the events of a peer on a thread of its own until stop(): logs them at once, unless the library prints them
    itself, and keeps them for take()."""

    def __init__(self, next_event: Callable[[], bytes | None], logs: bool):
        self._next, self._logs = next_event, logs
        self._waiting: collections.deque[dict[str, Any]] = collections.deque(maxlen=1000)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name='rumor-events', daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            self._drain()

    def _drain(self) -> None:
        line = self._next()
        while line is not None:
            event = json.loads(line)
            event['text'] = in_python(event['text'])
            if self._logs and event['kind'] in ('log', 'progress', 'phase'):
                LOGGER.log(_LEVELS.get(event['level'], logging.INFO), '%s', event['text'])
            self._waiting.append(event)
            line = self._next()

    def take(self) -> list[dict[str, Any]]:
        """The events since the last call. Any thread."""
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken

    def stop(self) -> None:
        """Takes what is left. Nothing is asked for afterwards, so the peer may be freed."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
            self._drain()
