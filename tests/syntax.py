#!/usr/bin/env python3
"""Reads what a run of the tests does not compile: warnings are errors there too, and nothing is generated or linked.

usage: syntax.py BUILD=SUITE,SUITE... [BUILD=SUITE...]
  For the first BUILD, every source that the tests of its suites do not need; for each further one, the sources that no
  BUILD before it has compiled or read either. Exit status 1 when a source has an error or a warning.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
import tally  # noqa: E402


def compiled(build, suites):
    """Object files that the tests of these suites need. Where ninja cannot tell (before 1.11): those that are there."""
    done = subprocess.run(['ninja', '-C', build, '-t', 'inputs', *tally.targets(build, suites)], capture_output=True,
                          text=True, check=False)
    if done.returncode == 0:
        return {line for line in done.stdout.splitlines() if line.endswith('.o')}
    return {path.relative_to(build).as_posix() for path in build.rglob('*.o')}


def sources(build):
    """{object file: command that makes it} of everything that the compiler makes in `build`."""
    entries = json.loads((build / 'compile_commands.json').read_text())
    return {entry['output']: shlex.split(entry['command']) for entry in entries}


def complaint(build, command):
    """What the compiler says of one source; empty when all is well."""
    command = [word for word in command if word != 'ccache']
    for option, words in (('-o', 2), ('-MF', 2), ('-MQ', 2), ('-MD', 1)):
        if option in command:
            at = command.index(option)
            del command[at:at + words]
    done = subprocess.run([*command, '-fsyntax-only'], cwd=build, capture_output=True, text=True, check=False)
    return '' if done.returncode == 0 else done.stderr


def main(arguments):
    seen, complaints, count = set(), [], 0
    for argument in arguments:
        folder, _, suites = argument.partition('=')
        build = pathlib.Path(folder)
        here = compiled(build, suites.split(','))
        todo = {name: command for name, command in sources(build).items() if name not in here | seen}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            complaints += [text for text in pool.map(lambda command: complaint(build, command), todo.values()) if text]
        seen |= here | set(todo)
        count += len(todo)
    print('\n'.join(complaints))
    print(f'{count} sources that no test of this run needs: {len(complaints)} do not compile')
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
