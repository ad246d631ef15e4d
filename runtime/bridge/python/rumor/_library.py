"""librumor through ctypes: finds it, declares its functions, turns its codes into exceptions. See rumor.h."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
from typing import Any

from .events import in_python

ABI = 5
OK, NOT_FOUND, IO, ENDED, ALONE = 0, 2, 3, 20, 21
F32, BF16 = 0, 1
NAME = 'librumor.so.1'


class RumorError(RuntimeError):
    """A call into librumor failed; `code` is a code of rumor.h."""

    def __init__(self, text: str, code: int):
        super().__init__(text)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code)


class MismatchError(RumorError):
    """The other peers or the state directory belong to another run, or the peers do not admit this peer."""


_ERRORS = {5: MismatchError}


def _candidates() -> list[str]:
    """Returns the paths to try for the library, the best path first."""
    named = os.environ.get('RUMOR_LIBRARY')
    if named:
        return [named]
    here = pathlib.Path(__file__).resolve().parent
    places = [here / NAME, here.parent / '.rumor.mesonpy.libs' / NAME]  # in a wheel; built by pip
    for tree in here.parents[3:4]:  # a working tree
        places += sorted(tree.glob(f'build*/runtime/bridge/{NAME}'), key=lambda path: -path.stat().st_mtime)
    places += [folder / NAME for folder in map(pathlib.Path, ('/usr/local/lib', '/usr/lib'))]
    places += [path for folder in ('/usr/local/lib', '/usr/lib') for path in pathlib.Path(folder).glob(f'*/{NAME}')]
    return [str(path) for path in places if path.exists()] + [NAME]  # and wherever the linker looks


def load() -> ctypes.CDLL:
    """Loads the library and declares its functions. Raises ImportError, which names the paths it tried."""
    tried = []
    for path in _candidates():
        try:
            return _declare(ctypes.CDLL(path), path)
        except OSError as error:
            tried.append(str(error))
    raise ImportError('librumor was not found: ' + '; '.join(tried) + '. Build and install Rumor (meson install), or '
                      f'set RUMOR_LIBRARY to the path of {NAME}, such as /home/me/rumor/build/runtime/bridge/{NAME}')


def _declare(library: ctypes.CDLL, path: str) -> ctypes.CDLL:
    swarm, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    functions = {
        'rumor_abi': (number, []),
        'rumor_version': (text, []),
        'rumor_error': (text, []),
        'rumor_create': (number, [text, ctypes.POINTER(swarm)]),
        'rumor_option': (number, [swarm, text, text]),
        'rumor_parameter': (number, [swarm, text, number, ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint32), swarm]),
        'rumor_local': (number, [swarm, text, ctypes.c_size_t, swarm]),
        'rumor_cuda_parameter': (number, [swarm, text, number, ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint32), swarm,
                                          number]),
        'rumor_cuda_local': (number, [swarm, text, ctypes.c_size_t, swarm, number]),
        'rumor_start': (number, [swarm, ctypes.c_double]),
        'rumor_step': (number, [swarm, ctypes.c_uint32, ctypes.c_double]),
        'rumor_warning': (text, [swarm]),
        'rumor_event': (text, [swarm]),
        'rumor_status': (number, [swarm, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]),
        'rumor_checkpoint': (number, [swarm]),
        'rumor_show_shared': (number, [swarm, number]),
        'rumor_take_back': (number, [swarm]),
        'rumor_interrupt': (number, [swarm]),
        'rumor_leave': (number, [swarm, ctypes.c_double]),
        'rumor_free': (None, [swarm]),
    }
    for name, (result, arguments) in functions.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f'{path} is no librumor: it has no {name}') from None
        function.restype, function.argtypes = result, arguments
    if library.rumor_abi() < ABI:
        raise ImportError(f'{path} is too old for this package: ABI {library.rumor_abi()}, wanted {ABI} or later')
    return library


def check(library: ctypes.CDLL, code: int, *fine: int) -> int:
    """Returns `code` if it is OK or in `fine`; otherwise raises the exception for it."""
    if code == OK or code in fine:
        return code
    text = in_python(library.rumor_error().decode('utf-8', 'replace'))
    raise _ERRORS.get(code, RumorError)(text, code)
