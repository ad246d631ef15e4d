"""`python -m rumor ...` is the rumor command: the one that came with the package, or the one of this machine."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys
import sysconfig


def main() -> None:
    """Becomes the command. Ends with an error if there is none."""
    places = (pathlib.Path(__file__).resolve().parent / 'bin', pathlib.Path(sysconfig.get_path('scripts')))
    command = next((str(place / 'rumor') for place in places if (place / 'rumor').exists()), shutil.which('rumor'))
    if command is None or os.path.realpath(command) == os.path.realpath(sys.argv[0]):  # this script itself
        sys.exit('there is no rumor command: install the wheel that tools/wheel makes, or Rumor itself (meson install)')
    os.execv(command, ['rumor', *sys.argv[1:]])


if __name__ == '__main__':
    main()
