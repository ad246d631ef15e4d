"""What a package brings: man pages, completions, librumor, the unit, the .deb, the example for Slurm; the reference.

usage: install.py RUMOR BUILD

What needs a tool that is not here (groff, zsh, fish, systemd-analyze, dpkg-deb) is left out, and said.
"""
import gzip
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import peers
from peers import run

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))


def here(tool):
    if not shutil.which(tool):
        print(f'left out: there is no {tool}')
    return shutil.which(tool)


def call(*args, **more):
    done = subprocess.run(args, capture_output=True, text=True, check=False, timeout=120 * peers.SLOW, **more)
    assert done.returncode == 0, (args, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def commands():
    """As `rumor --help` names them."""
    listed = run('--help').stdout.split('Subcommands:\n')[1].split('\n\n')[0]
    return re.findall(r'^  (\w+) ', listed, re.MULTILINE)


def check_reference():
    """Everything that the program takes, asked of the program itself another way, stands in its reference."""
    text = run('help', '--markdown').stdout
    names = commands()
    assert len(names) >= 10 and {'peer', 'status', 'top', 'doctor', 'help'} <= set(names), names
    for name in names:
        assert f'\n### rumor {name}\n' in text, name
        section = text.split(f'\n### rumor {name}\n')[1].split('\n### rumor ')[0]
        for option in re.findall(r'^ +(--[a-z-]+)', run(name, '--help').stdout, re.MULTILINE):
            assert f'| `{option}` |' in section, (name, option)
    for line in text.split('\n'):  # no cell is empty that says what something is
        assert not re.fullmatch(r'\| `.*\|  \|', line), line
    presets = re.findall(r'preset: (.*)', run('peer', '--help').stdout)
    assert presets
    with open(os.path.join(SOURCE, 'runtime', 'run', 'presets.cc'), encoding='utf-8') as file:
        section, used = '', set()
        for line in file:
            section = (re.match(r'(?:.*R"toml\()?\[(\w+)\]$', line.rstrip()) or [None, section])[1]
            if key := re.match(r'(\w+) = ', line):
                used.add(f'{section}.{key[1]}')
    keys = set(re.findall(r'^\| `(\w+\.\w+)` \|', text, re.MULTILINE))
    assert len(keys) > 70 and len(used) > 20 and used <= keys, used - keys
    for row in ('| `optimizer.rate` | a number from 1e-09 to 1000 | `0.5` | yes |',
                '| `network.listen` | a text in quotes | `"127.0.0.1:0"` |  |', '| `exchange.outer_rate` | '):
        assert row in text, row
    with_typo = run('peer', 'synthetic', '--set', 'network.statu=1')
    assert 'network.status' in with_typo.stderr
    for status in range(5):
        assert re.search(rf'\b{status} \w+', text.split('## Exit status')[1]), status
    assert run('help', 'peer').stdout == run('peer', '--help').stdout
    assert run('help', 'nothing').returncode == 2 and run('help', '--man', 'nothing').returncode == 2


def install(build, root):
    call('meson', 'install', '-C', build, '--no-rebuild', '--destdir', root)
    rumor, = (os.path.join(folder, 'rumor') for folder, _, files in os.walk(root) if folder.endswith('/bin')
              and 'rumor' in files)
    return os.path.dirname(os.path.dirname(rumor))


def check_man(prefix):
    found = {}
    for folder, _, files in os.walk(prefix):
        found.update({name: os.path.join(folder, name) for name in files if name.endswith('.1.gz')})
    assert set(found) == {'rumor.1.gz'} | {f'rumor-{name}.1.gz' for name in commands()}, found
    for name, path in found.items():
        with gzip.open(path, 'rt', encoding='utf-8') as file:
            page = file.read()
        assert page.startswith('.TH ') and '.SH SYNOPSIS' in page, name
        if here('groff'):
            shown = subprocess.run(['groff', '-man', '-Tutf8', '-ww'], input=page, capture_output=True, text=True,
                                   check=False)
            assert shown.returncode == 0 and not shown.stderr, (name, shown.stderr)
    with gzip.open(found['rumor.1.gz'], 'rt', encoding='utf-8') as file:
        assert re.search(r'fBoptimizer\.rate\\fR .*\npeak.*\(shared\); default: 0\.5\n', file.read())
    with gzip.open(found['rumor-peer.1.gz'], 'rt', encoding='utf-8') as file:
        assert '\\-\\-status\\-token' in file.read()


def complete(file, *words):
    """What bash offers for the last of the words."""
    script = (f'source {file}; COMP_WORDS=({" ".join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; '
              '_rumor; printf "%s\\n" "${COMPREPLY[@]}"')
    return call('bash', '-c', script).split()


def check_completions(prefix):
    file = os.path.join(prefix, 'share/bash-completion/completions/rumor')
    assert set(commands()) <= set(complete(file, 'rumor', ''))
    assert complete(file, 'rumor', 'do') == ['doctor']
    assert complete(file, 'rumor', 'peer', '--status-') == ['--status-token']
    assert complete(file, 'rumor', 'peer', '--device', 'c') == ['cpu', 'cuda']
    assert 'revoke' in complete(file, 'rumor', 'key', '')
    assert os.path.basename(__file__) in ' '.join(complete(file, 'rumor', 'stats', __file__[:-3]))
    zsh, fish = (os.path.join(prefix, 'share', name) for name in
                 ('zsh/site-functions/_rumor', 'fish/vendor_completions.d/rumor.fish'))
    if here('zsh'):
        call('zsh', '-n', zsh)
    if here('fish'):
        call('fish', '--no-execute', fish)
    for path in (zsh, fish):
        with open(path, encoding='utf-8') as text:
            assert 'status-token' in text.read(), path


def check_pkg_config(root, prefix):
    """A program in C is built and run with no more than what was installed."""
    pkg_config, = (folder for folder, _, files in os.walk(prefix) if 'rumor.pc' in files)
    env = dict(os.environ, PKG_CONFIG_PATH=pkg_config, PKG_CONFIG_SYSROOT_DIR=root)
    source, program = (os.path.join(root, name) for name in ('version.c', 'version'))
    with open(source, 'w', encoding='utf-8') as file:
        file.write('#include <rumor.h>\n#include <stdio.h>\nint main(void) { return puts(rumor_version()) < 0; }\n')
    flags = call('pkg-config', '--cflags', '--libs', 'rumor', env=env).split()
    call('cc', source, '-o', program, *flags)
    said = call(program, env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(pkg_config)))
    assert said.split() == call('pkg-config', '--modversion', 'rumor', env=env).split(), said


def check_pip(folder):
    """`pip install runtime/bridge/python`, where there is no library, ends with what to do instead. As pip calls Meson
    there."""
    tree = os.path.join(folder, 'pip')
    shutil.copytree(os.path.join(SOURCE, 'runtime', 'bridge', 'python'), tree)
    with open(os.path.join(tree, 'pyproject.toml'), encoding='utf-8') as file:
        options = re.findall(r'"(-D[^"]*)"', file.read())
    said = subprocess.run(['meson', 'setup', *options, tree, os.path.join(tree, 'build')], capture_output=True,
                          text=True, check=False)
    assert said.returncode != 0 and 'run tools/wheel' in said.stdout and '-Dpython=true' in options, said


def check_unit(prefix):
    path = os.path.join(prefix, 'lib/systemd/system/rumor@.service')
    with open(path, encoding='utf-8') as file:
        unit = file.read()
    for line in ('Type=notify', 'DynamicUser=yes', 'ProtectSystem=strict', 'CapabilityBoundingSet='):
        assert f'\n{line}\n' in unit, line
    command = re.search(r'^ExecStart=(\S+) (.*)$', unit, re.MULTILINE)
    assert command[1].endswith('/bin/rumor'), command
    for option in re.findall(r'--[a-z-]+', command[2]):
        assert option in run('peer', '--help').stdout, option
    if here('systemd-analyze'):
        with open(path, 'w', encoding='utf-8') as file:  # it is looked at as if it were installed
            file.write(unit.replace(command[1], peers.RUMOR))
        call('systemd-analyze', 'verify', '--man=no', path)


def check_deb(build):
    if not (here('dpkg-deb') and here('dpkg-shlibdeps')):
        return
    said = call(os.path.join(SOURCE, 'tools', 'deb'), '--from', build)
    package = re.search(r'(\S+\.deb)$', said.strip())[1]
    try:
        listed = call('dpkg-deb', '--contents', package)
        for part in ('/bin/rumor\n', 'man1/rumor-peer.1.gz', 'completions/rumor', 'rumor@.service', 'grafana.json'):
            assert part in listed, (part, listed)
        assert 'root/root' in listed and 'Depends: libc6' in call('dpkg-deb', '--info', package).replace(',', '\n')
    finally:
        os.remove(package)


def check_slurm(folder):
    """Two tasks of a job on a pretended node find each other, and nobody else may join."""
    tools = os.path.join(folder, 'bin')
    os.mkdir(tools)
    with open(os.path.join(tools, 'scontrol'), 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\n[ "$*" = "show hostnames one[1]" ] && echo 127.0.0.1\n')
    os.chmod(os.path.join(tools, 'scontrol'), 0o755)
    tasks = []
    try:
        for task in range(2):
            env = dict(os.environ, PATH=tools + ':' + os.environ['PATH'], RUMOR=peers.RUMOR, SLURM_JOB_ID='4242',
                       RUMOR_STATE=os.path.join(folder, 'state'), SLURM_PROCID=str(task), SLURM_LOCALID=str(task),
                       SLURM_NTASKS='2', SLURM_JOB_NODELIST='one[1]', SLURMD_NODENAME='127.0.0.1')
            result = os.path.join(folder, f'result-{task}')
            tasks.append(subprocess.Popen(
                [os.path.join(SOURCE, 'tools', 'packaging', 'slurm-peer'), 'synthetic', '--set', 'run.samples=30000',
                 '--set', 'exchange.period_ms=3', '--json', result], env=env, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True))
        said = [task.communicate(timeout=60 * peers.SLOW)[1] for task in tasks]
    finally:
        for task in tasks:
            if task.poll() is None:
                task.kill()
                task.wait()
    assert [task.returncode for task in tasks] == [0, 0], said
    digests = {re.search(r'"digest": "(\w+)"', open(os.path.join(folder, f'result-{task}'), encoding='utf-8').read())[1]
               for task in range(2)}
    assert len(digests) == 1 and all('linked to' in one for one in said), said


def check_notify(folder):
    """A peer tells the service manager when it is ready, what it does, and that it stops."""
    for name in (os.path.join(folder, 'notify'), '\0rumor-test-' + str(os.getpid())):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
            heard.bind(name)
            heard.settimeout(20 * peers.SLOW)
            process = subprocess.Popen([peers.RUMOR, 'peer', 'synthetic', '--quiet', '--set', 'exchange.period_ms=20'],
                                       env=dict(os.environ, NOTIFY_SOCKET=name.replace('\0', '@')),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                first = heard.recv(4096).decode()
                assert first.startswith('READY=1\nSTATUS=') and 'samples' in first, first
                later = heard.recv(4096).decode()
                assert later.startswith('STATUS=training, '), later
                process.terminate()
                while (last := heard.recv(4096).decode()).startswith('STATUS='):
                    pass
                assert last == 'STOPPING=1', last
                assert process.wait(20 * peers.SLOW) == 0 and 'listening on' in process.stderr.read()
            finally:
                process.kill()
                process.wait()


def main():
    peers.RUMOR, build = map(os.path.abspath, sys.argv[1:])
    check_reference()
    with tempfile.TemporaryDirectory(prefix='rumor-install-') as folder:
        check_pip(folder)
        check_notify(folder)
        check_slurm(folder)
        prefix = install(build, os.path.join(folder, 'root'))
        check_man(prefix)
        check_completions(prefix)
        check_pkg_config(os.path.join(folder, 'root'), prefix)
        check_unit(prefix)
    check_deb(build)


if __name__ == '__main__':
    main()
