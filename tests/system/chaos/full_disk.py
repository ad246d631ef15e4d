"""Disks that are full on demand, for one peer's state directory.

Mounted: a tmpfs in a mount namespace of its own, with a file that takes all that is left. Needs leave to mount (root,
or user namespaces). LimitedFileSize: RLIMIT_FSIZE of the running process, lowered and raised; a larger write fails with
EFBIG as it would with ENOSPC. Needs no leave. full_disk() gives the first where it can, else it says so and gives the
other.
"""
import contextlib
import os
import resource
import subprocess


class LimitedFileSize:
    LIMIT = 16 << 10  # less than a checkpoint

    def visible(self, path):
        return path

    def start(self, swarm):
        swarm.start(0)

    def fill(self, peer):
        _, hard = resource.prlimit(peer.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(peer.process.pid, resource.RLIMIT_FSIZE, (self.LIMIT, hard))

    def free(self, peer):
        _, hard = resource.prlimit(peer.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(peer.process.pid, resource.RLIMIT_FSIZE, (hard, hard))


class Mounted:
    def __init__(self, holder, directory):
        self.holder, self.directory = holder, directory

    def visible(self, path):
        """Where `path` inside the mount is seen from outside."""
        return f'/proc/{self.holder.pid}/root{path}'

    def start(self, swarm):
        wrap = ['nsenter', f'--target={self.holder.pid}', '--mount', '--user', '--preserve-credentials']
        if os.geteuid() == 0:
            wrap = wrap[:3]
        swarm.start(0, wrap=wrap)

    def fill(self, _peer):
        path = os.path.join(self.visible(self.directory), 'filler')
        with contextlib.suppress(OSError), open(path, 'ab', buffering=0) as file:
            while file.write(bytes(4096)):
                pass

    def free(self, _peer):
        os.remove(os.path.join(self.visible(self.directory), 'filler'))


@contextlib.contextmanager
def full_disk(directory):
    os.makedirs(directory, exist_ok=True)
    flags = '-m' if os.geteuid() == 0 else '-rm'
    script = f'mount -t tmpfs -o size=8m tmpfs "{directory}" && echo mounted && exec sleep 600'
    try:
        holder = subprocess.Popen(['unshare', flags, 'sh', '-c', script], stdout=subprocess.PIPE, text=True)
    except OSError as error:
        print(f'no unshare here ({error}): a limit on the size of files stands in for the full disk')
        yield LimitedFileSize()
        return
    try:
        if holder.stdout.readline().strip() == 'mounted':
            yield Mounted(holder, directory)
        else:
            print('mounting is not permitted here: a limit on the size of files stands in for the full disk')
            yield LimitedFileSize()
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
