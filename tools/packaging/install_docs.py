#!/usr/bin/env python3
"""Part of `meson install`: man pages and completions, written by the program that is being installed.

usage: install_docs.py RUMOR MANDIR DATADIR     folders below the prefix; Meson's environment says where that is
"""
import gzip
import os
import pathlib
import re
import subprocess
import sys


def said(rumor, *args):
    return subprocess.run([rumor, 'help', *args], check=True, capture_output=True, text=True).stdout


def main(rumor, man, data):
    prefix = pathlib.Path(os.environ['MESON_INSTALL_DESTDIR_PREFIX'])

    def write(folder, name, content):
        (prefix / folder).mkdir(parents=True, exist_ok=True)
        (prefix / folder / name).write_bytes(content)

    commands = re.findall(r'^### rumor (\w+)$', said(rumor, '--markdown'), re.MULTILINE)
    for command in ['', *commands]:
        page = said(rumor, '--man', *([command] if command else [])).encode()
        name = f'rumor-{command}.1.gz' if command else 'rumor.1.gz'
        write(f'{man}/man1', name, gzip.compress(page, mtime=0))
    for shell, folder, name in (('bash', 'bash-completion/completions', 'rumor'),
                                ('zsh', 'zsh/site-functions', '_rumor'),
                                ('fish', 'fish/vendor_completions.d', 'rumor.fish')):
        write(f'{data}/{folder}', name, said(rumor, '--completion', shell).encode())


if __name__ == '__main__':
    main(*sys.argv[1:])
