// Makes the pictures of viewers.md and terminal.md again: `make pictures`.  Each viewer shows the same profile.
//   .viewers/node docs/make_pictures.mjs [--into FOLDER] [--texts] [VIEWER ...]
//
// Next to each picture is a text of what it shows.  A test makes the texts again and compares, so that no picture stays when
// its viewer or the profile written for it changes; --texts writes only those of other viewers, without running them.
//
// Needs the viewers of tests/viewers/install and Debian's dbus-daemon fonts-noto-color-emoji golang-go graphviz imagemagick
// kcachegrind pngquant xauth xdotool xvfb.
import {execFileSync, spawn} from 'node:child_process';
import {createReadStream, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import {basename, extname, join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {withPage} from '../tests/viewers/browser.mjs';

const ROOT = join(import.meta.dirname, '..');
const WIDTH = 1200;
const folder = mkdtempSync(join(tmpdir(), 'pictures-'));
const made = name => join(folder, name);
const words = process.argv.slice(2);
const target = words[0] === '--into' ? resolve(words.splice(0, 2)[1]) : join(import.meta.dirname, 'pictures');
const textsOnly = words[0] === '--texts' && Boolean(words.shift());
const picture = name => join(target, name + '.png');
const run = (program, ...words) => execFileSync(program, words, {cwd: folder, timeout: 120_000, encoding: 'utf8'});
const fastprof = (...words) => run(join(ROOT, '.venv/bin/fastprof'), ...words, '-q');
const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds));

// large.png with 256 colours
const shrink = name => run('pngquant', '--force', '--strip', '--output', picture(name), '256', 'large.png');

// Takes a picture of a page once `ready(page)` is done; the value of `shown` becomes the lines of a text next to it.
async function shot(name, height, url, ready, shown) {
  await withPage(async page => {
    const metrics = {width: WIDTH, height, deviceScaleFactor: 1, mobile: false};
    await page.send('Emulation.setDeviceMetricsOverride', metrics);
    await page.open(url);
    await ready(page);
    await pause(1500);      // what moves comes to rest
    const {data} = await page.send('Page.captureScreenshot', {format: 'png'});
    writeFileSync(made('large.png'), Buffer.from(data, 'base64'));
    shrink(name);
    if (shown) writeFileSync(join(target, name + '.txt'), (await page.value(shown)).join('\n') + '\n');
  }, '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1');
}

async function click(page, x, y) {
  for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased'])
    await page.send('Input.dispatchMouseEvent', {type, x, y, button: 'left', clickCount: 1});
}

// What a picture of our page shows, whatever the fonts: its texts, and boxes wider than 4 pixels as row, place and width in
// thousandths, name.
const SHOWN = `(() => {
  const {flame, view} = fastprof, share = x => Math.round(1000 * x / flame.holder.clientWidth);
  const boxes = flame.drawn.filter(d => d.w > 4).map(d => [d.row, share(d.x), share(d.w),
    d.many ? d.many.length + ' small ones' : view.name(d.fn, d.id)].join(' '));
  for (const name of document.querySelectorAll('#table .own')) name.textContent = name.parentNode.title.split('\\n')[0];  // it was cut
  return [...document.body.innerText.split('\\n').map(line => line.trim()).filter(line => line), ...boxes];
})()`;

async function report() {
  fastprof('report', 'pool.fpa', '-o', 'pool.html');
  const page = pathToFileURL(made('pool.html')).href;
  await shot('report', 620, page, async page => {
    await page.until('document.documentElement.dataset.ready');
    await page.value(`fastprof.flame.click(fastprof.flame.drawn.find(box => fastprof.view.name(box.fn) === 'Pool::worker'))`);
    await page.value(`document.getElementById('reset').click()`);
  }, SHOWN);
  await shot('report-time-dark', 420, page, async page => {
    await page.until('document.documentElement.dataset.ready');
    await page.value(`document.querySelector('#tabs [data-view=time]').click()`);
    await page.value(`document.getElementById('theme').click()`);
  }, SHOWN);
}

async function speedscope() {
  const release = join(ROOT, '.viewers/node_modules/speedscope/dist/release/index.html');
  await shot('speedscope', 420, pathToFileURL(release).href, async page => {
    await page.until(`!!document.querySelector('#file')`);
    await page.choose('#file', made('pool.speedscope.json'));
    while (!page.said.some(({text}) => text.startsWith('import: '))) await pause(50);
    await pause(500);
    await page.value(`window.dispatchEvent(new KeyboardEvent('keypress', {key: '2'}))`);   // left heavy
  });
}

async function perfetto() {
  const types = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm'};
  const server = createServer(({url}, answer) => {
    const name = new URL(url, 'http://x').pathname;
    const file = name === '/pool.pftrace' ? made(name) : join(ROOT, '.viewers/perfetto', name === '/' ? 'index.html' : name);
    if (!existsSync(file)) return answer.writeHead(404).end();
    answer.writeHead(200, {'Content-Type': types[extname(file)] ?? 'application/octet-stream'});
    createReadStream(file).pipe(answer);
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  const site = `http://127.0.0.1:${server.address().port}`;
  try {
    await shot('perfetto', 560, `${site}/#!/?url=${site}/pool.pftrace`, async page => {
      await page.until('!!window.app?.trace?.engine');
      await pause(1500);
      await click(page, 205, 22);   // no side bar
      await pause(500);
      await click(page, 10, 155);   // all threads
    });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function pprof() {
  const go = spawn('go', ['tool', 'pprof', '-no_browser', '-http=127.0.0.1:', 'pool.pb.gz'],
    {cwd: folder, detached: true, stdio: ['ignore', 'ignore', 'pipe']});
  try {
    const site = await new Promise((found, failed) => {
      let said = '';
      go.stderr.on('data', text => {
        const address = (said += text).match(/http:\/\/127\.0\.0\.1:\d+/);
        if (address) found(address[0]);
      });
      go.on('exit', () => failed(new Error(said))).on('error', failed);
    });
    await shot('pprof', 360, site + '/ui/flamegraph?si=time', page => page.until(`document.readyState === 'complete'`));
  } finally {
    process.kill(-go.pid);  // with the program that `go` started
  }
}

// A real window on a display of its own.  No command waits for long, as a window manager would be needed for its answer.
const WINDOW = `
export HOME=$PWD/home XDG_RUNTIME_DIR=$PWD/home XDG_CONFIG_HOME=$PWD/home
mkdir -m 700 home
printf '[TipOfDay]\\nRunOnStart=false\\n' > home/kcachegrindrc
dbus-run-session -- kcachegrind pool.callgrind > home/log 2>&1 &
until window=$(xdotool search --onlyvisible --name 'pool.callgrind'); do sleep 0.5; done
sleep 2
xdotool windowmove $window 0 0 windowsize $window ${WIDTH} 620
sleep 1
CLICKS
import -window root large.png
kill %1
`;

function kcachegrind() {
  writeFileSync(made('window.sh'), WINDOW.replace('CLICKS', 
    [[150, 139], [615, 99], [521, 575]].map(([x, y]) => `xdotool mousemove ${x} ${y} click 1; sleep 1`).join('\n')));
  run('xvfb-run', '-a', '-s', `-screen 0 ${WIDTH}x620x24`, 'timeout', '60', 'bash', 'window.sh');
  shrink('kcachegrind');
}

// The profile that each viewer opens, and the viewer's version if tests/viewers/install chooses it.
const profiles = {
  speedscope: ['pool.speedscope.json', () => JSON.parse(readFileSync(join(ROOT, '.viewers/node_modules/speedscope/package.json'))).version],
  perfetto: ['pool.pftrace', () => basename(realpathSync(join(ROOT, '.viewers/perfetto'))).split('-')[0]],
  pprof: ['pool.pb.gz'],
  kcachegrind: ['pool.callgrind'],
};

// Writes a viewer's profile, and the figures in it as the text next to the picture.
function profile(name) {
  const [file, version = () => ''] = profiles[name];
  fastprof('convert', 'pool.fpa', '-o', file);
  writeFileSync(join(target, name + '.txt'), `${name} ${version()}`.trim() + '\n' + fastprof('top', '-n', '0', '--csv', file));
}

async function terminal() {
  run(join(ROOT, '.venv/bin/python'), join(ROOT, 'docs/make_terminal.py'), 'terminal.svg');
  await shot('terminal', 733, pathToFileURL(made('terminal.svg')).href, () => {});
}

const viewers = {report, terminal, speedscope, perfetto, pprof, kcachegrind};
const wanted = words.length ? words : Object.keys(textsOnly ? profiles : viewers);
try {
  symlinkSync(join(ROOT, 'tests'), made('tests'));  // pictures show the paths of viewers.md
  fastprof('convert', 'tests/corpus/xray/good/fdr5-pool-clang19.xray', '-s', 'tests/corpus/xray/pool-clang19',
    '--demangle', 'templates', '--thread', '29283', '--thread', '29285', '-o', 'pool.fpa');
  for (const name of wanted) {
    if (name in profiles) profile(name);
    if (!textsOnly) await viewers[name]();
  }
} finally {
  rmSync(folder, {recursive: true, force: true});
}
