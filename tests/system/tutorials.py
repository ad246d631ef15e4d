"""Runs what the pages of tools/tutorials/ tell the reader to type, and finds what they say comes of it.

usage: tutorials.py RUMOR [PROGRAM]... PAGE.md...     a PROGRAM is in the shell's path, as rumor is

Blocks marked `sh` run one after another in one shell, in an empty folder, and must end with status 0. A block marked
`output` after one holds lines that must stand in what it wrote, in this order; `...` stands for anything.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import peers

BLOCK = re.compile(r'^```(\w+)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
PORT = re.compile(r'\b7(?:00[1-9]|73[4-9])\b')
MARK = 'end-of-block-3141'


def steps_of(text):
    """[(commands, [expected line])] of a page."""
    steps = []
    for kind, body in BLOCK.findall(text):
        if kind == 'sh':
            steps.append((body, []))
        elif kind == 'output':
            steps[-1][1].extend(body.rstrip('\n').split('\n'))
    return steps


def with_free_ports(text):
    ports = {}
    for port in PORT.findall(text):
        if port not in ports:
            ports[port] = str(peers.free_ports(1)[0])
    return PORT.sub(lambda match: ports[match.group()], text)


def unfound(expected, said):
    """The first line expected that is not there, or None."""
    lines = iter(said.split('\n'))
    for line in expected:
        pattern = re.compile('.*'.join(map(re.escape, re.split(r' ?\.\.\. ?', line))))
        if not any(pattern.fullmatch(one.rstrip()) for one in lines):
            return line
    return None


def run_page(page, programs):
    with open(page, encoding='utf-8') as file:
        steps = steps_of(with_free_ports(file.read()))
    assert len(steps) >= 4, f'{page}: only {len(steps)} blocks'
    with tempfile.TemporaryDirectory(prefix='rumor-tutorial-') as folder:
        os.mkdir(os.path.join(folder, 'bin'))
        for program in programs:
            os.symlink(os.path.abspath(program), os.path.join(folder, 'bin', os.path.basename(program)))
        env = dict(os.environ, PATH=os.path.join(folder, 'bin') + ':' + os.environ['PATH'])
        script = 'set -eu\n' + ''.join(f'{commands}\necho {MARK}\n' for commands, _ in steps)
        work = os.path.join(folder, 'work')
        os.mkdir(work)
        with open(os.path.join(folder, 'said'), 'w+', encoding='utf-8', errors='replace') as log:
            shell = subprocess.Popen(['bash', '-c', script], cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                     stderr=log, start_new_session=True)
            try:
                status = shell.wait(240 * peers.SLOW)
            finally:
                try:
                    os.killpg(shell.pid, 9)  # with what it left behind
                except ProcessLookupError:
                    pass
            log.seek(0)
            said = log.read()
        parts = said.split(MARK + '\n')
        assert status == 0, f'{page}: block {len(parts)} ended with {status}:\n{parts[-1]}'
        for (commands, expected), part in zip(steps, parts):
            line = unfound(expected, part)
            assert line is None, f'{page}: "{line}" did not come of\n{commands}\nbut\n{part}'
    print(f'{page}: {len(steps)} blocks')


def check_itself():
    assert unfound(['a...c', 'd'], 'abc\nx\nd\n') is None
    assert unfound(['d', 'a...c'], 'abc\nx\nd\n') == 'a...c'
    assert unfound(['ab'], 'abc\n') == 'ab'


def main():
    peers.RUMOR = os.path.abspath(sys.argv[1])
    check_itself()
    if missing := [tool for tool in ('bash', 'curl', 'openssl') if not shutil.which(tool)]:
        print(f'skipped: no {" ".join(missing)}')
        sys.exit(77)
    for page in sys.argv[1:]:
        if page.endswith('.md'):
            run_page(page, [one for one in sys.argv[1:] if not one.endswith('.md')])


if __name__ == '__main__':
    main()
