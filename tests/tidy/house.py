"""The rooms of the tree and which of them may use which: the table that ARCHITECTURE.md draws."""

from complaint import Complaint

# The house: each room, and the rooms that it may use. ARCHITECTURE.md draws it. A room stands below all that use it, so
# there is no circle and no arrow up; check_table() sees to that. 'models/*' are all rooms of a folder but its drivers.
# `runtime/base` is under everything, although its folder is near the roof.
HOUSE = {
    'runtime/base': [],
    'runtime/threads': [],
    'runtime/report': [],
    'compress/payload': [],
    'compress/select': ['compress/payload'],
    'compress/link': ['compress/payload'],
    'compress/border': [],
    'compress': ['compress/*'],
    'gossip/contract': [],
    'gossip/wire': ['gossip/contract'],
    'gossip/trust': ['gossip/contract', 'gossip/wire'],
    'gossip/links': ['gossip/contract', 'gossip/wire', 'gossip/trust'],
    'gossip/overlay': ['gossip/links'],
    'gossip/copies': ['gossip/contract', 'gossip/trust', 'gossip/links'],
    'gossip/buffers': ['gossip/wire', 'gossip/trust', 'gossip/links'],
    'gossip/audits': ['gossip/contract', 'gossip/links', 'gossip/overlay'],
    'gossip/broadcast': ['gossip/contract', 'gossip/buffers', 'gossip/audits', 'gossip/links', 'gossip/overlay'],
    'gossip/pipeline': ['gossip/contract', 'gossip/wire'],
    'gossip': ['gossip/*'],
    'gossip/asio': ['gossip/contract', 'gossip/trust'],
    'models/kernels': [],
    'models/layers': ['models/kernels'],
    'models/families': ['models/kernels', 'models/layers'],
    'models/decoders': ['models/kernels', 'models/layers', 'models/families'],
    'models/tokenizer': [],
    'models/data': ['models/kernels', 'models/layers', 'models/families', 'models/tokenizer'],
    'models/evaluate': ['models/kernels', 'models/families', 'models/data'],
    'models/optimizers': ['models/kernels', 'models/families', 'models/data'],
    'models/weights': ['models/families', 'models/data'],
    'gpu/device': ['compress/payload'],
    'gpu/cuda/libraries': ['gpu/device'],
    'gpu/cuda': ['gpu/device', 'gpu/cuda/libraries'],
    'gpu/compress': ['compress/payload', 'compress/select', 'gpu/device'],
    'gpu/models': ['models/kernels', 'models/families', 'gpu/device'],
    'gpu/optimizers': ['models/optimizers', 'gpu/device'],
    'runtime/run': ['compress/select', 'gossip/contract', 'gossip/trust', 'models/*'],
    'runtime/contributions': ['gossip/contract', 'gossip/trust'],
    'runtime/replica': ['compress/payload', 'compress/link', 'gossip/contract', 'runtime/contributions'],
    'runtime/exchange': ['compress/payload', 'gossip', 'models/kernels', 'runtime/run', 'runtime/replica'],
    'runtime/training': ['compress/*', 'models/*', 'gpu/*', 'runtime/run', 'runtime/replica', 'runtime/exchange'],
    'runtime/training/outside': ['compress/*', 'models/families', 'models/weights', 'runtime/run', 'runtime/replica',
                                 'runtime/training'],
    'runtime/stages': ['compress/border', 'gossip/contract', 'gossip/wire', 'gossip/pipeline', 'models/*',
                       'runtime/run', 'runtime/training'],
    'runtime/audit': ['compress/*', 'gossip/contract', 'models/*', 'runtime/run', 'runtime/replica', 'runtime/exchange',
                      'runtime/training'],
    'runtime/node': ['compress', 'compress/*', 'gossip', 'gossip/*', 'runtime/run', 'runtime/contributions',
                     'runtime/replica', 'runtime/exchange', 'runtime/training', 'runtime/audit'],
    'runtime/sim/record': ['runtime/report'],
    'runtime/sim/world': ['gossip', 'gossip/*', 'runtime/run', 'runtime/replica', 'runtime/node', 'runtime/sim/record'],
    'runtime/sim/cluster': ['compress', 'compress/*', 'models/*', 'runtime/run', 'runtime/node', 'runtime/sim/record',
                            'runtime/sim/world'],
    'runtime/sim/stages': ['gossip/pipeline', 'gossip/wire', 'models/*', 'runtime/run', 'runtime/node',
                           'runtime/stages', 'runtime/report', 'runtime/sim/record', 'runtime/sim/world',
                           'runtime/sim/cluster'],
    'runtime/sim/storm': ['gossip/*', 'runtime/sim/world', 'runtime/sim/cluster', 'runtime/sim/stages'],
    'runtime/sim/methods': ['models/*', 'runtime/run', 'runtime/sim/world', 'runtime/sim/cluster'],
    'runtime/sim/experiments': ['runtime/report', 'runtime/run', 'runtime/sim/record', 'runtime/sim/cluster',
                                'runtime/sim/stages', 'runtime/sim/methods'],
    'runtime/daemon/console': ['runtime/run', 'runtime/node'],
    'runtime/daemon/state': ['compress/payload', 'gossip/asio', 'runtime/replica', 'runtime/node'],
    'runtime/daemon/ports': ['gossip/contract', 'gossip/asio', 'runtime/run'],
    'runtime/daemon/admission': ['gossip/trust', 'runtime/run', 'runtime/daemon/state'],
    'runtime/daemon/stages': ['gossip', 'gossip/*', 'gossip/asio', 'runtime/stages', 'runtime/node'],
    'runtime/daemon/status': ['gossip/contract', 'gossip/asio', 'runtime/run', 'runtime/node', 'runtime/daemon/console',
                              'runtime/daemon/state'],
    'runtime/daemon/export': ['models/weights', 'runtime/contributions', 'runtime/replica', 'runtime/node',
                              'runtime/daemon/state', 'runtime/daemon/status'],
    'runtime/daemon/loop': ['gossip/*', 'gossip/asio', 'models/*', 'gpu/*', 'runtime/threads', 'runtime/run',
                            'runtime/replica', 'runtime/training', 'runtime/stages', 'runtime/node',
                            'runtime/daemon/console', 'runtime/daemon/state', 'runtime/daemon/ports',
                            'runtime/daemon/admission', 'runtime/daemon/stages', 'runtime/daemon/status',
                            'runtime/daemon/export'],
    'runtime/bridge': ['models/*', 'gpu/*', 'runtime/run', 'runtime/training', 'runtime/training/outside',
                       'runtime/daemon/state', 'runtime/daemon/status', 'runtime/daemon/loop'],
    'tools/words': ['models/weights', 'runtime/run', 'runtime/sim/world', 'runtime/daemon/status'],
    'tools/text': ['models/*', 'runtime/replica', 'runtime/daemon/state', 'tools/words'],
    'tools/stats': ['compress', 'compress/*', 'models/*', 'runtime/report', 'runtime/replica', 'runtime/daemon/state',
                    'runtime/daemon/status', 'tools/words'],
    'tools/sim': ['models/*', 'runtime/report', 'runtime/replica', 'runtime/sim/*', 'runtime/daemon/console',
                  'runtime/daemon/state', 'runtime/daemon/status', 'tools/words'],
    'tools/audit': ['models/*', 'runtime/threads', 'runtime/report', 'runtime/run', 'runtime/replica',
                    'runtime/training', 'runtime/audit', 'runtime/daemon/state', 'runtime/daemon/loop', 'tools/words'],
    'tools/serve': ['compress/border', 'models/*', 'gossip/asio', 'gossip/pipeline', 'runtime/run', 'runtime/replica',
                    'runtime/stages', 'runtime/daemon/state', 'runtime/daemon/status', 'tools/words'],
    'tools/commands': ['gossip/*', 'gossip/asio', 'models/*', 'gpu/*', 'runtime/run', 'runtime/replica',
                       'runtime/stages', 'runtime/sim/*', 'runtime/daemon/state', 'runtime/daemon/ports',
                       'runtime/daemon/admission',
                       'runtime/daemon/status', 'runtime/daemon/export', 'runtime/daemon/loop', 'tools/words',
                       'tools/text', 'tools/stats', 'tools/sim', 'tools/audit', 'tools/serve', 'runtime/audit'],
}
GROUND = ['runtime/base']  # every room may use it
FOLDER_FILES_MAX = 29
# Drivers: rooms that 'FOLDER/*' leaves out, since they have sockets.
DRIVERS = ['gossip/asio', 'gpu/cuda', 'gpu/cuda/libraries']


def room_of(path):
    """The room that holds `path`; 'tests', or '' for a file at the root or somewhere unknown."""
    if path.startswith('tests/'):
        return 'tests'
    folder = path.rsplit('/', 1)[0] if '/' in path else ''
    return folder if folder in HOUSE else ''


def inside(room, folders):
    """Whether `room` is one of `folders` or lies in one."""
    return any(room == folder or room.startswith(folder + '/') for folder in folders)


def rooms_below(room):
    """The rooms that `room` may use."""
    rooms = set(GROUND)
    for name in HOUSE.get(room, []):
        if name.endswith('/*'):
            rooms |= {other for other in HOUSE if other.startswith(name[:-1]) and other not in DRIVERS}
        else:
            rooms.add(name)
    return rooms


def check_table():
    """A room may name only rooms that stand before it in the table: then no arrow goes up, and there is no circle."""
    seen = set()
    for room in HOUSE:
        for below in sorted(rooms_below(room) - seen - {room}):
            if below != room and room not in GROUND:
                yield Complaint('tests/tidy/house.py', 1, 'house', f'{room} names {below}, which is above it')
        seen.add(room)


def check_rooms(texts, code):
    """Each file of code lies in a room of the table, and no room is crowded."""
    files = {}
    for path in sorted(texts):
        if path.endswith(code) and not room_of(path):
            yield Complaint(path, 1, 'room', 'this folder is no room of tests/tidy/house.py')
        if path.endswith(code) or path.startswith('tests/'):
            files.setdefault(path.rsplit('/', 1)[0], []).append(path)
    for folder, paths in files.items():
        if len(paths) > FOLDER_FILES_MAX:
            yield Complaint(paths[0], 1, 'crowded',
                            f'{folder} has {len(paths)} files; {FOLDER_FILES_MAX} are the limit')
