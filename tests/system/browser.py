"""A headless Chromium for the system tests, driven through its WebDriver (W3C) with Python's standard library alone."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import peers


def missing():
    """What of the two programs is not here; empty: all is."""
    return [name for name in ('chromium', 'chromedriver') if not shutil.which(name)]


class Browser:
    """One page. Use with `with`: the browser is gone afterwards, whatever happened."""

    def __init__(self):
        self.port = peers.free_ports(1)[0]
        self.profile = tempfile.TemporaryDirectory(prefix='rumor-browser-')
        self.driver = subprocess.Popen(['chromedriver', f'--port={self.port}'], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
        self.session = ''

    def __enter__(self):
        try:
            peers.wait_for('chromedriver', lambda: self.ready(), 30)
            options = {'args': ['--headless=new', '--no-sandbox', '--disable-dev-shm-usage', '--hide-scrollbars',
                                '--disable-gpu', f'--user-data-dir={self.profile.name}'],
                       'binary': shutil.which('chromium')}
            wanted = {'alwaysMatch': {'goog:chromeOptions': options, 'goog:loggingPrefs': {'browser': 'ALL'}}}
            self.session = '/session/' + self.ask('POST', '/session', {'capabilities': wanted})['sessionId']
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        if self.session:
            try:
                self.ask('DELETE', self.session)
            except OSError:
                pass
        os.killpg(self.driver.pid, 15)  # its own group: driver and browser
        self.driver.wait()
        for _ in range(20):  # the browser's helpers write until they are gone
            try:
                self.profile.cleanup()
                return
            except OSError:
                time.sleep(0.1)

    def ready(self):
        try:
            return self.ask('GET', '/status')['ready']
        except OSError:
            return False

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f'http://127.0.0.1:{self.port}{path}', data, method=method,
                                         headers={'Content-Type': 'application/json'})
        try:
            with urllib.request.urlopen(request, timeout=60 * peers.SLOW) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            raise AssertionError(f'{method} {path}: {error.read().decode(errors="replace")[:500]}') from error

    def devtools(self, command, **parameters):
        """One command of the Chrome DevTools Protocol."""
        return self.ask('POST', self.session + '/goog/cdp/execute', {'cmd': command, 'params': parameters})

    def show(self, width, scheme='light', height=900):
        """The size of the window in CSS pixels, and the reader's choice of light or dark."""
        self.devtools('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                      mobile=width < 600)
        self.devtools('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])

    def open(self, address):
        self.ask('POST', self.session + '/url', {'url': address})

    def run(self, script):
        """What the body of a function gives back, in the page."""
        return self.ask('POST', self.session + '/execute/sync', {'script': script, 'args': []})

    def keys(self, *keys):
        """Presses them one after another where the focus is. Names as in KeyboardEvent.key."""
        for key in keys:
            code = {'Tab': 9, 'Enter': 13, 'Escape': 27, 'End': 35, 'Home': 36, 'ArrowLeft': 37, 'ArrowRight': 39}[key]
            text = {'text': '\r'} if key == 'Enter' else {}
            for kind in ('keyDown', 'keyUp'):
                self.devtools('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                              **text)

    def complaints(self):
        """What the console and the network said since the last call: errors and warnings."""
        said = self.ask('POST', self.session + '/se/log', {'type': 'browser'})
        return [one['message'] for one in said if one['level'] in ('SEVERE', 'WARNING')]

    def picture(self, file, whole=True):
        if whole:
            size = self.devtools('Page.getLayoutMetrics')['cssContentSize']
            clip = {'x': 0, 'y': 0, 'width': size['width'], 'height': size['height'], 'scale': 1}
            data = self.devtools('Page.captureScreenshot', captureBeyondViewport=True, clip=clip)['data']
        else:
            data = self.devtools('Page.captureScreenshot')['data']
        with open(file, 'wb') as out:
            out.write(base64.b64decode(data))
