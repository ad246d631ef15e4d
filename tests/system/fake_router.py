"""A home router on loopback: NAT-PMP (RFC 6886) over UDP, UPnP's Internet Gateway Device over SSDP and SOAP. It maps
nothing; it keeps what it was asked, as a router would, and answers as it is told to."""
import http.server
import re
import select
import socket
import struct
import threading

NATPMP_PORT, SSDP = 5351, ('239.255.255.250', 1900)
SERVICE = 'urn:schemas-upnp-org:service:WANIPConnection:1'
DEVICE = 'urn:schemas-upnp-org:device:InternetGatewayDevice:1'
DESCRIPTION = f'''<?xml version="1.0"?>
<root xmlns="urn:schemas-upnp-org:device-1-0"><specVersion><major>1</major><minor>0</minor></specVersion>
<device><deviceType>{DEVICE}</deviceType><friendlyName>fake</friendlyName><UDN>uuid:1</UDN>
<deviceList><device><deviceType>urn:schemas-upnp-org:device:WANDevice:1</deviceType><UDN>uuid:2</UDN>
<deviceList><device><deviceType>urn:schemas-upnp-org:device:WANConnectionDevice:1</deviceType><UDN>uuid:3</UDN>
<serviceList><service><serviceType>{SERVICE}</serviceType><serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId>
<SCPDURL>/scpd.xml</SCPDURL><controlURL>/control</controlURL><eventSubURL>/event</eventSubURL></service></serviceList>
</device></deviceList></device></deviceList></device></root>'''


class Router:
    """At a loopback address of its own. `mappings`: outside port to (inside port, seconds)."""

    def __init__(self, address):
        self.address, self.ended = address, False
        self.forget()
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((address, NATPMP_PORT))
        self.ssdp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.ssdp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.ssdp.bind(SSDP)
        self.ssdp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                             socket.inet_aton(SSDP[0]) + socket.inet_aton('127.0.0.1'))
        self.http = http.server.ThreadingHTTPServer((address, 0), self.handler())
        self.threads = [threading.Thread(target=run) for run in (self.serve_udp, self.http.serve_forever)]

    def forget(self):
        """As it was at first."""
        self.natpmp = self.upnp = True  # which it speaks
        self.outside, self.lease, self.refusal = '203.0.113.7', 3600, 0  # refusal: a result code of NAT-PMP
        self.taken, self.only_permanent = set(), False                   # of UPnP
        self.mappings, self.asked = {}, 0

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.http.shutdown()
        for thread in self.threads:
            thread.join()
        for one in (self.udp, self.ssdp, self.http):
            if isinstance(one, socket.socket):
                one.close()
            else:
                one.server_close()

    def is_found(self):
        """Whether multicast works on this machine's loopback."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('127.0.0.1'))
            asker.settimeout(5)
            try:
                asker.sendto(f'M-SEARCH * HTTP/1.1\r\nST: {DEVICE}\r\n\r\n'.encode(), SSDP)
                return bool(asker.recv(2048))
            except OSError:
                return False

    def serve_udp(self):
        while not self.ended:
            for ready in select.select([self.udp, self.ssdp], [], [], 0.1)[0]:
                data, sender = ready.recvfrom(2048)
                answer = self.natpmp_answer(data) if ready is self.udp else self.ssdp_answer(data.decode())
                if answer:
                    self.udp_out(ready).sendto(answer, sender)

    def udp_out(self, ready):
        if ready is self.udp:
            return self.udp
        if not hasattr(self, 'ssdp_out'):
            self.ssdp_out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.ssdp_out.bind((self.address, 0))
        return self.ssdp_out

    def natpmp_answer(self, data):
        if not self.natpmp:
            return None
        version, operation = data[0], data[1]
        assert version == 0, data
        if operation == 0 and len(data) == 2:
            return struct.pack('>BBHI4s', 0, 128, 0, 1, socket.inet_aton(self.outside))
        assert operation == 2 and len(data) == 12, data  # TCP
        inside, outside, lifetime = struct.unpack('>HHI', data[4:])
        self.asked += 1
        if self.refusal:
            return struct.pack('>BBHIHHI', 0, 130, self.refusal, 1, inside, 0, 0)
        if lifetime == 0:
            assert outside == 0, 'RFC 6886, 3.4'
            self.mappings = {port: kept for port, kept in self.mappings.items() if kept[0] != inside}
            return struct.pack('>BBHIHHI', 0, 130, 0, 1, inside, 0, 0)
        self.mappings[outside] = (inside, lifetime)
        return struct.pack('>BBHIHHI', 0, 130, 0, 1, inside, outside, self.lease)

    def ssdp_answer(self, text):
        if not self.upnp or not text.startswith('M-SEARCH') or DEVICE not in text:
            return None
        where = f'http://{self.address}:{self.http.server_address[1]}/root.xml'
        return (f'HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\nST: {DEVICE}\r\nUSN: uuid:1::{DEVICE}\r\n'
                f'EXT:\r\nSERVER: fake UPnP/1.1\r\nLOCATION: {where}\r\n\r\n').encode()

    def soap(self, action, field):
        """The answer to a call: (status, XML inside the body)."""
        if action == 'GetExternalIPAddress':
            return 200, f'<NewExternalIPAddress>{self.outside}</NewExternalIPAddress>'
        outside = int(field('NewExternalPort'))
        assert field('NewProtocol') == 'TCP'
        if action == 'DeletePortMapping':
            return (200, '') if self.mappings.pop(outside, None) else (500, 714)
        assert action == 'AddPortMapping', action
        self.asked += 1
        lease = int(field('NewLeaseDuration'))
        if outside in self.taken:
            return 500, 718
        if lease and self.only_permanent:
            return 500, 725
        assert field('NewInternalClient') == '127.0.0.1' and field('NewPortMappingDescription') == 'rumor'
        self.mappings[outside] = (int(field('NewInternalPort')), lease)
        return 200, ''

    def handler(router):  # pylint: disable=no-self-argument
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.give(200, DESCRIPTION if self.path == '/root.xml' else '')

            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length'])).decode()
                action = self.headers['SOAPAction'].strip('"').split('#')[1]
                status, said = router.soap(action, lambda name: re.search(f'<{name}>([^<]*)</{name}>', body).group(1))
                if status == 200:
                    inner = f'<u:{action}Response xmlns:u="{SERVICE}">{said}</u:{action}Response>'
                else:
                    inner = ('<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>'
                             f'<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>{said}</errorCode>'
                             '<errorDescription>no</errorDescription></UPnPError></detail></s:Fault>')
                self.give(status, '<?xml version="1.0"?>'
                                  '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">'
                                  f'<s:Body>{inner}</s:Body></s:Envelope>')

            def give(self, status, text):
                self.send_response(status)
                self.send_header('Content-Type', 'text/xml')
                self.send_header('Content-Length', str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass
        return Handler
