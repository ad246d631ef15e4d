"""The page for people, in a real browser: rendered, used by pointer and keyboard, without a complaint of the console.

usage: page.py RUMOR [FOLDER]     pictures of the page go to FOLDER; exit status 77 where there is no browser
"""
import os
import sys
import time

import peers
from browser import Browser, missing
from peers import Swarm, wait_for

TOKEN = 'a-token-for-this-test-only'


def text_of(browser, selector):
    return browser.run(f'return document.querySelector("{selector}").textContent')


def await_text(browser, selector, condition):
    return wait_for(f'{selector} as expected', lambda: condition(text_of(browser, selector)))


def eventually(check, *args):
    """The page follows a second or two behind: until the check passes, or its last complaint."""
    end = time.monotonic() + 20 * peers.SLOW
    while True:
        try:
            return check(*args)
        except (AssertionError, KeyError, ValueError):
            if time.monotonic() > end:
                raise
            time.sleep(0.3)


def check_content(browser, swarm):
    """The page shows what /status has."""
    status = swarm.peers[0].status()
    assert text_of(browser, '#run') == 'synthetic'
    assert status['node_id'].startswith(text_of(browser, '#node'))
    tiles = browser.run('return [...document.querySelectorAll("#tiles > div")].map((d) => d.innerText.split("\\n"))')
    named = {tile[0]: tile[1] for tile in tiles}
    assert named['Peers training'] == '3', named
    assert 0 < float(named['Loss']) < 100 and named['Accuracy'].endswith(' %'), named
    assert int(named['Smaller than dense'].split()[0].replace(',', '')) > 5, named
    assert text_of(browser, '#limit').endswith('.'), text_of(browser, '#limit')
    rows = browser.run('return [...document.querySelectorAll("#list_peers tr")].map((r) => r.cells[0].textContent)')
    assert sorted(rows) == sorted(peer['node_id'][:8] for peer in status['peers']), rows
    tensor_rows = 'return [...document.querySelectorAll("#list_compression_tensors tr")]'
    tensors = browser.run(tensor_rows + '.map((r) => r.cells.length)')
    assert tensors == [5] * len(status['compression']['tensors']), tensors
    taus = browser.run(tensor_rows + '.map((r) => r.cells[3].textContent)')
    assert any(set(tau) & set('123456789') for tau in taus), taus
    described = swarm.peers[0].get('/figures')
    shown = browser.run('return [...document.querySelectorAll("#groups dt, th")].map((e) => e.textContent)')
    assert shown == [figure['label'] for kind in (False, True) for block in described if block['list'] == kind
                     for figure in block['figures']], shown
    events = text_of(browser, '#events')
    for peer in status['peers']:
        assert f'peer {peer["node_id"][:8]} trains with us' in events, events


def check_charts(browser):
    """Each has lines; arrow keys and the pointer read points of them; the axis can be chosen."""
    for chart in ('loss_chart', 'accuracy_chart', 'traffic_chart'):
        lines = browser.run(f'return [...document.querySelectorAll("#{chart} path")].map((p) => p.getTotalLength())')
        assert lines and min(lines) > 20, (chart, lines)
    browser.run('document.querySelector("#loss_chart svg").focus()')
    browser.keys('End', 'ArrowLeft')
    tip = text_of(browser, '#loss_chart .tip')
    assert 'own batches' in tip and not browser.run('return document.querySelector("#loss_chart .tip").hidden'), tip
    assert browser.run('return document.querySelector("#loss_chart .cursor") !== null')
    browser.keys('Escape')
    assert browser.run('return document.querySelector("#loss_chart .tip").hidden')
    browser.run('document.querySelector("input[value=seconds]").click()')
    await_text(browser, '#loss_chart svg', lambda text: ' s' in text)
    box = browser.run('const b = document.querySelector("#traffic_chart svg").getBoundingClientRect();'
                      'window.scrollTo(0, b.top); const c = document.querySelector("#traffic_chart svg")'
                      '.getBoundingClientRect(); return [c.left + c.width / 2, c.top + c.height / 2]')
    browser.devtools('Input.dispatchMouseEvent', type='mouseMoved', x=box[0], y=box[1])
    await_text(browser, '#traffic_chart .tip', lambda text: 'dense' in text)


def check_graph(browser, swarm):
    """A node of the graph is a button: by click and by Enter it tells its figures."""
    nodes = browser.run('return [...document.querySelectorAll(".graph .peer")].map((n) => n.dataset.node)')
    assert sorted(nodes) == sorted(peer['node_id'] for peer in swarm.peers[0].status()['peers']), nodes
    if browser.run('return document.querySelector(".graph .peer").getAttribute("aria-pressed")') == 'false':
        browser.run('document.querySelector(".graph .peer").dispatchEvent(new MouseEvent("click", {bubbles: true}))')
    assert nodes[0][:8] in text_of(browser, '#graph_detail')
    browser.run('document.querySelectorAll(".graph .peer")[1].focus()')
    browser.keys('Enter')
    assert nodes[1][:8] in text_of(browser, '#graph_detail') and 'round trip' in text_of(browser, '#graph_detail')
    wait_for('the focus survives', lambda: browser.run('return document.activeElement.dataset.node') == nodes[1], 3)


CONTRAST = '''
const parts = (c) => c.match(/[0-9.]+/g).map(Number);
const linear = (x) => (x /= 255, x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
const light = (c) => { const [r, g, b] = parts(c).map(linear);
  return .2126 * r + .7152 * g + .0722 * b; };
const behind = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > 0) return getComputedStyle(e).backgroundColor; } return "rgb(255, 255, 255)"; };
let worst = [99, ""];
for (const e of document.querySelectorAll("body *")) {
  if (e.closest("[hidden]") || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
  const style = getComputedStyle(e), svg = e instanceof SVGElement;
  if (e.closest(".skip") || e.matches(".me")) continue;
  const [a, b] = [light(svg ? style.fill : style.color), light(behind(e))].sort();
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < worst[0]) worst = [ratio, e.tagName + "." + e.getAttribute("class") + " " + e.textContent.slice(0, 30)];
}
return worst;'''


def check_layout(browser, folder):
    """Nothing overflows from phone to desktop; text has the contrast of WCAG 2.2 AA, light and dark."""
    for width in (320, 390, 768, 1440):
        for scheme in ('light', 'dark'):
            browser.show(width, scheme)
            # Charts follow the window when the browser tells them.
            wait_for(f'a page that fits a window of {width} pixels',
                     lambda: browser.run('return document.documentElement.scrollWidth') <= width, 5)
            contrast, where = browser.run(CONTRAST)
            assert contrast >= 4.5, f'contrast {contrast:.2f} at {where}, {scheme}'
            if folder:
                browser.picture(os.path.join(folder, f'page-{width}-{scheme}.png'))
    unnamed = browser.run('return [...document.querySelectorAll("button, input, [role=button], [role=img], '
                          '[role=progressbar], [role=radiogroup]")].filter((e) => !e.getAttribute("aria-label") '
                          '&& !(e.labels && e.labels.length) && !e.textContent.trim()).map((e) => e.outerHTML)')
    assert not unnamed, unnamed


def trains_and_is_looked_at(folder):
    with Swarm(3, 0, 'exchange.period_ms=30', 'run.samples=10000000') as swarm, Browser() as browser:
        for peer in swarm.peers:
            peer.start('--threads', '1')
        wait_for('three peers', lambda: (swarm.peers[0].status() or {}).get('live_peers') == 3)
        wait_for('an evaluation', lambda: 'accuracy' in (swarm.peers[0].status() or {}))
        browser.show(1440)
        browser.open(f'http://{swarm.peers[0].status_address}/')
        wait_for('the page', lambda: browser.run('return document.body.dataset.ready') == 'yes')
        wait_for('curves', lambda: browser.run('return document.querySelectorAll("#loss_chart path").length') == 2)
        eventually(check_content, browser, swarm)
        eventually(check_charts, browser)
        eventually(check_graph, browser, swarm)
        check_layout(browser, folder)
        assert browser.complaints() == []
        gone = swarm.peers[0].status()['peers'][0]['node_id']
        victim = next(peer for peer in swarm.peers[1:] if peer.status()['node_id'] == gone)
        victim.kill()
        await_text(browser, '#events', lambda text: f'peer {gone[:8]} trains with us no longer' in text)
        swarm.peers[0].kill()
        await_text(browser, '#notice', lambda text: text.startswith('No answer from the peer'))


def asks_for_the_token():
    """On all addresses only with a token: the page asks for it, and takes it from its address."""
    with Swarm(1, 0, 'run.samples=10000000') as swarm, Browser() as browser:
        peer = swarm.peers[0]
        port = peer.status_address.rsplit(':', 1)[1]
        refused = peers.run('peer', 'synthetic', '--status', f'0.0.0.0:{port}')
        assert refused.returncode == 2 and '--status-token' in refused.stderr, refused
        file = os.path.join(swarm.directory, 'token')
        with open(file, 'w', encoding='utf-8') as out:
            out.write(TOKEN + '\n')
        peer.status_address = f'0.0.0.0:{port}'
        peer.start('--status-token', file)
        page = f'http://127.0.0.1:{port}/'
        wait_for('the page', lambda: 'status at' in peer.said())
        browser.open(page)
        wait_for('the question', lambda: not browser.run('return document.querySelector("#ask").hidden'))
        assert text_of(browser, '#node') == '\u2013'
        browser.run('document.querySelector("#token").value = "wrong";'
                    'document.querySelector("#ask button").click()')
        await_text(browser, '#notice', lambda text: 'not its token' in text)
        browser.run(f'document.querySelector("#token").value = "{TOKEN}";'
                    'document.querySelector("#ask button").click()')
        await_text(browser, '#run', lambda text: text == 'synthetic')
        assert browser.run('return document.querySelector("#ask").hidden')
        browser.run('sessionStorage.clear()')
        browser.open(f'{page}?token={TOKEN}')
        await_text(browser, '#run', lambda text: text == 'synthetic')
        assert browser.run('return location.href') == page, 'the token stays in the address line'


def main():
    if missing():
        print(f'skipped: no {" and no ".join(missing())} (Debian: apt install chromium chromium-driver)')
        sys.exit(77)
    peers.RUMOR = sys.argv[1]
    trains_and_is_looked_at(sys.argv[2] if len(sys.argv) > 2 else '')
    asks_for_the_token()


if __name__ == '__main__':
    main()
