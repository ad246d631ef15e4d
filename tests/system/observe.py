"""What programs that watch a peer read: /metrics, the Grafana dashboard, the event log, TensorBoard's event files.

usage: observe.py RUMOR DASHBOARD.json
"""
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import urllib.request

import peers
from peers import Swarm, wait_for

SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*\})? (\S+)')
# What `promtool check metrics` complains of: units that are not base units, types in names.
NOT_BASE = {'ms', 'milliseconds', 'minutes', 'hours', 'kilobytes', 'megabytes', 'kb', 'mb', 'bits', 'percent'}
TYPES = {'gauge', 'counter', 'histogram', 'summary'}


def metrics_of(peer):
    with urllib.request.urlopen(f'http://{peer.status_address}/metrics', timeout=5) as answer:
        return answer.read().decode()


def lint(text):
    """The families {name: type} of a text in exposition format 0.0.4; AssertionError where it breaks a convention."""
    families, helped, seen, last = {}, set(), set(), None
    for line in text.rstrip('\n').split('\n'):
        if line.startswith('# HELP '):
            name, said = line[7:].split(' ', 1)
            assert name not in helped and said.endswith('.') and len(said) > 8, line
            helped.add(name)
        elif line.startswith('# TYPE '):
            name, kind = line[7:].split(' ')
            assert name not in families and name in helped and kind in ('gauge', 'counter'), line
            families[name], last = kind, name
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample and sample[1] == last, f'not below its TYPE: {line}'
            assert (sample[1], sample[2]) not in seen, f'twice: {line}'
            seen.add((sample[1], sample[2]))
            float(sample[3])
    for name, kind in families.items():
        assert re.fullmatch(r'rumor(_[a-z0-9]+)+', name), f'{name}: rumor_ first, then words in lower case'
        assert name.endswith('_total') == (kind == 'counter'), f'{name} is a {kind}'
        assert not (set(name.split('_')) & (NOT_BASE | TYPES)), f'{name}: base units, and no type in the name'
    return families


def check_lint():
    """The rules themselves can fail."""
    good = ('# HELP rumor_sent_bytes_total Bytes sent.\n# TYPE rumor_sent_bytes_total counter\n'
            'rumor_sent_bytes_total 1\n')
    lint(good)
    for bad in (good.replace('_total', ''), good.replace('counter', 'gauge'), good.replace('_bytes', '_kilobytes'),
                good.replace('rumor_', 'node_'), good + 'rumor_other 1\n', good + 'rumor_sent_bytes_total 1\n',
                good.split('\n', 1)[1], good.replace('_sent', '_gauge'), good.replace(' 1\n', ' one\n')):
        try:
            lint(bad)
        except (AssertionError, ValueError):
            continue
        raise AssertionError(f'not noticed: {bad}')


def check_dashboard(file, families):
    """Every metric it asks for is there; it has what Grafana needs to load it."""
    with open(file, encoding='utf-8') as text:
        board = json.load(text)
    assert board['title'] and board['schemaVersion'] >= 30 and board['uid'] == 'rumor'
    ids = [panel['id'] for panel in board['panels']]
    assert len(set(ids)) == len(ids) >= 10
    variables = {one['name'] for one in board['templating']['list']}
    queries = [target['expr'] for panel in board['panels'] for target in panel['targets']]
    queries += [one['definition'] for one in board['templating']['list'] if one['type'] == 'query']
    for query in queries:
        names = re.findall(r'rumor_\w+', query)
        assert names and set(names) <= set(families), f'{query}: unknown {set(names) - set(families)}'
        assert set(re.findall(r'\$\{?(\w+)', query)) <= variables, query
        for name in re.findall(r'rate\((rumor_\w+)', query):
            assert families[name] == 'counter', f'{query}: rate of a gauge'
    corners = [(p['gridPos']['x'] + p['gridPos']['w'], p['gridPos']['y'], p['gridPos']['x']) for p in board['panels']]
    assert max(right for right, _, _ in corners) <= 24 and len({c[1:] for c in corners}) == len(corners)


def check_events(file, other):
    """A line of JSON each; it tells of the other peer's coming and going."""
    with open(file, encoding='utf-8') as lines:
        events = [json.loads(line) for line in lines]
    assert all({'at', 'kind', 'level', 'text'} <= set(event) for event in events), events
    assert [event['at'] for event in events] == sorted(event['at'] for event in events)
    of_other = [event['kind'] for event in events if event.get('node_id') == other]
    assert of_other == ['joined', 'left'], of_other
    assert any(event['kind'] == 'evaluated' and event['loss'] > 0 and event['samples'] > 0 for event in events), events


def crc32c(data):
    """Bit by bit (RFC 3720, B.4)."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def records(data):
    """The records of a TFRecord file; AssertionError where a checksum is wrong or the end is missing."""
    at = 0
    while at < len(data):
        length, = struct.unpack_from('<Q', data, at)
        assert struct.unpack_from('<I', data, at + 8)[0] == masked(data[at:at + 8]), 'length'
        record = data[at + 12:at + 12 + length]
        assert struct.unpack_from('<I', data, at + 12 + length)[0] == masked(record), 'data'
        at += 16 + length
        yield record


def fields(message):
    """[(number, value)] of a Protocol Buffers message: integers, or bytes."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 0x7f) << shift
            shift, at = shift + 7, at + 1
            if not message[at - 1] & 0x80:
                return value, at
    at, found = 0, []
    while at < len(message):
        key, at = varint(at)
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            value, at = varint(at)
        else:
            if key & 7 == 2:
                size, at = varint(at)
            value, at = message[at:at + size], at + size
        found.append((key >> 3, value))
    return found


def curves_of(folder):
    """Read back by a decoder of this test's own: points (samples, value) by name."""
    file, = glob.glob(os.path.join(folder, 'events.out.tfevents.*'))
    with open(file, 'rb') as content:
        events = [dict(fields(record)) for record in records(content.read())]
    assert events[0][3] == b'brain.Event:2' and 5 not in events[0], events[0]
    curves = {}
    for event in events[1:]:
        assert 1.6e9 < struct.unpack('<d', event[1])[0] < 5e9
        for _, value in fields(event[5]):
            value = dict(fields(value))
            curves.setdefault(value[1].decode(), []).append((event[2], struct.unpack('<f', value[2])[0]))
    return curves


def check_tensorboard(folder, evaluations):
    curves = curves_of(folder)
    assert {'test/loss', 'test/accuracy', 'train/loss', 'train/rate', 'swarm/live_peers', 'traffic/sent_bytes'} <= \
        set(curves), curves.keys()
    assert all(curve == sorted(curve, key=lambda point: point[0]) for curve in curves.values())
    assert len(curves['test/loss']) == evaluations, (curves['test/loss'], evaluations)
    assert max(live for _, live in curves['swarm/live_peers']) == 2


def check_last_evaluation():
    """That of a peer which ends by itself is in all that was written."""
    with tempfile.TemporaryDirectory() as folder:
        events, curves, result = (os.path.join(folder, name) for name in ('events', 'curves', 'result'))
        subprocess.run([peers.RUMOR, 'peer', 'synthetic', '--set', 'run.samples=4000', '--until-done', '--quiet',
                        '--events', events, '--tensorboard', curves, '--json', result], check=True,
                       capture_output=True, timeout=60 * peers.SLOW)
        with open(result, encoding='utf-8') as file:
            final = json.load(file)
        samples, accuracy = curves_of(curves)['test/accuracy'][-1]
        assert samples == final['samples'] >= 4000 and abs(accuracy - final['accuracy']) < 1e-6, (samples, final)
        with open(events, encoding='utf-8') as lines:
            last = [json.loads(line) for line in lines if '"evaluated"' in line][-1]
        assert last['samples'] == samples, last


def main():
    peers.RUMOR = sys.argv[1]
    check_lint()
    check_last_evaluation()
    with Swarm(2, 0, 'exchange.period_ms=20', 'run.samples=10000000') as swarm:
        events, curves = (os.path.join(swarm.directory, name) for name in ('events', 'curves'))
        one, other = swarm.peers
        one.start('--threads', '1', '--events', events, '--tensorboard', curves)
        other.start('--threads', '1')
        wait_for('two peers', lambda: (one.status() or {}).get('live_peers') == 2)
        late = ('rumor_test_loss', 'rumor_peer_round_trip', 'rumor_tensor_threshold', 'rumor_peer_staleness')
        wait_for('all metrics', lambda: (text := metrics_of(one)) and all(name in text for name in late))
        node = other.status()['node_id']
        families = lint(metrics_of(one))
        check_dashboard(sys.argv[2], families)
        other.stop()
        wait_for('it is missed', lambda: (one.status() or {}).get('live_peers') == 1)
        assert one.stop() == 0
        check_events(events, node)
        with open(events, encoding='utf-8') as lines:
            check_tensorboard(curves, sum('"evaluated"' in line for line in lines))


if __name__ == '__main__':
    main()
