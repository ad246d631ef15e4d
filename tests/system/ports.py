"""A peer that asks a router for a port: the libraries' real packets, to a router on loopback.

usage: ports.py RUMOR
"""
import os
import sys
import time

import peers
from fake_router import Router
from peers import Swarm, run, wait_for

# A loopback address that no other test takes at the same time.
ROUTER = f'127.{os.getpid() >> 16 & 63 | 64}.{os.getpid() >> 8 & 255}.{os.getpid() & 255 or 1}'


def mapping_of(peer):
    return (peer.status() or {}).get('port_mapping', '')


def ends_within(peer, seconds):
    began = time.monotonic()
    assert peer.stop() == 0, peer.said()
    took = time.monotonic() - began
    assert took < seconds * peers.SLOW, f'ended only after {took:.1f} s'


def known_to(peer, address):
    try:
        with open(os.path.join(peer.state, 'addresses'), encoding='utf-8') as file:
            return address in file.read().split()
    except FileNotFoundError:
        return False


def natpmp(swarm, router):
    """Mapped, told to others, renewed, told again when the address outside changes, taken back at the end."""
    router.lease = 2
    home, other = swarm.peers[:2]
    port = int(home.listen.split(':')[1])
    other.seeds = [home.listen]
    home.start('--map-port', ROUTER)
    other.start('--checkpoint-every', '0.5')
    wait_for('a mapping', lambda: mapping_of(home).startswith(f'203.0.113.7:{port} leads here, by NAT-PMP'))
    assert list(router.mappings) == [port] and router.mappings[port][0] == port, router.mappings
    wait_for('the other knows', lambda: known_to(other, f'203.0.113.7:{port}'))
    assert known_to(other, home.listen)
    asked = router.asked
    wait_for('it is renewed, twice', lambda: router.asked >= asked + 2)
    assert home.said().count('leads here') == 1, 'said once while nothing changes'
    router.outside = '203.0.113.8'
    wait_for('the new address', lambda: known_to(other, f'203.0.113.8:{port}'))
    doctor = run('doctor', '--peer', home.status_address).stdout
    assert 'ok    router       203.0.113.8' in doctor, doctor
    router.refusal = 2  # not authorized
    router.upnp = False
    wait_for('why not', lambda: 'does not let machines open ports' in mapping_of(home), 20)
    wait_for('a warning, once', lambda: home.said().count('warning: the router') == 1)
    ends_within(other, 10)
    ends_within(home, 10)


def taken_back(swarm, router):
    """A peer that ends in peace leaves no door open."""
    home = swarm.peers[0]
    home.start('--map-port', ROUTER)
    wait_for('a mapping', lambda: router.mappings)
    ends_within(home, 10)
    assert not router.mappings, router.mappings


def upnp(swarm, router):
    """Where the port is taken another one is; where leases are not known the mapping stays until it is taken back."""
    router.natpmp = False
    home = swarm.peers[0]
    port = int(home.listen.split(':')[1])
    router.taken, router.only_permanent = {port}, True
    home.start('--map-port', ROUTER)
    wait_for('a mapping', lambda: ' leads here, by UPnP' in mapping_of(home))
    (outside, (inside, lease)), = router.mappings.items()
    assert inside == port != outside and lease == 0, router.mappings
    assert mapping_of(home).startswith(f'203.0.113.7:{outside} ') and 'until it is taken back' in mapping_of(home)
    ends_within(home, 10)
    assert not router.mappings, router.mappings
    router.taken, router.only_permanent = set(), False
    home.start('--map-port', ROUTER)
    wait_for('a lease', lambda: router.mappings.get(port) == (port, 3600))
    ends_within(home, 10)
    assert not router.mappings, router.mappings


def nobody(swarm, router):
    """A signal in the middle of a search ends the peer as soon as without; what failed is said with the fix."""
    router.natpmp = router.upnp = False
    home = swarm.peers[0]
    home.start('--map-port', ROUTER)
    wait_for('it runs', home.status)
    ends_within(home, 6)
    home.start('--map-port', ROUTER)
    wait_for('why not', lambda: 'opens no port' in mapping_of(home))
    for part in ('NAT-PMP: no answer', 'UPnP: no answer', 'network.advertise'):
        assert part in mapping_of(home), mapping_of(home)
    ends_within(home, 6)


def doctor(swarm, router):
    listen = f'network.listen={swarm.peers[0].listen}'
    ask = f'network.map_port={ROUTER}'
    good = run('doctor', 'synthetic', '--set', listen, '--set', ask)
    assert good.returncode == 0 and 'speaks NAT-PMP, its address outside is 203.0.113.' in good.stdout, good
    router.natpmp = False
    assert 'speaks UPnP' in run('doctor', 'synthetic', '--set', listen, '--set', ask).stdout
    router.outside = '0.0.0.0'
    assert 'it has no address outside' in run('doctor', 'synthetic', '--set', listen, '--set', ask).stdout
    router.outside = '100.64.3.2'
    behind = run('doctor', 'synthetic', '--set', listen, '--set', ask)
    assert 'is itself behind another' in behind.stdout and 'fix: ' in behind.stdout, behind
    alone = run('doctor', 'synthetic', '--set', listen, '--set', 'network.map_port=auto')
    assert 'only this machine reaches' in alone.stdout, alone
    bad = run('peer', 'synthetic', '--map-port', 'yes')
    assert bad.returncode == 2 and 'network.map_port wants "auto"' in bad.stderr, bad


def main():
    peers.RUMOR = sys.argv[1]
    try:
        made = Router(ROUTER)
    except OSError as error:
        print(f'no router on loopback: {error}')
        sys.exit(77)
    with made as router:
        built = run('doctor', 'synthetic', '--set', f'network.map_port={ROUTER}').stdout
        if 'this build can ask no router' in built:
            print('built without libnatpmp and libminiupnpc')
            sys.exit(77)
        if not router.is_found():
            print('no multicast on loopback, which UPnP needs')
            sys.exit(77)
        for scenario in (natpmp, taken_back, upnp, nobody, doctor):
            router.forget()
            with Swarm(2, 0, 'exchange.period_ms=20', 'run.samples=10000000') as swarm:
                scenario(swarm, router)
            print(scenario.__name__, 'ok', flush=True)


if __name__ == '__main__':
    main()
