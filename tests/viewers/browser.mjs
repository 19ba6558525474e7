// A headless Chromium without network, and without any npm package: the DevTools protocol over a pipe.  A message is
// JSON and ends in a NUL byte; Chromium reads them from descriptor 3 and writes to descriptor 4.
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';

const FLAGS = ['--headless=new', '--remote-debugging-pipe', '--no-sandbox', '--no-first-run', '--disable-gpu',
  '--disable-dev-shm-usage', '--disable-extensions', '--disable-sync', '--disable-background-networking',
  '--disable-component-update', '--allow-file-access-from-files', '--host-resolver-rules=MAP * ~NOTFOUND'];

// Runs `work(page)` in a new browser, and always ends the browser.
export async function withPage(work, ...flags) {
  const browser = new Browser(flags);
  try {
    return await browser.run(work);
  } finally {
    await browser.end();
  }
}

let kept;

// Runs `work(page)` in a browser that stays for the next work, until this process ends.  The page is always as new; a
// browser whose page cannot be cleared is replaced.
export async function inKeptPage(work) {
  kept ??= new Browser([]);
  try {
    return await kept.run(work);
  } finally {
    try {
      await kept.run(page => page.clear());
    } catch {
      await kept.end();
      kept = undefined;
    }
  }
}

class Browser {
  constructor(flags) {
    this.profile = mkdtempSync(join(tmpdir(), 'chromium-'));
    this.chromium = spawn('chromium', [...FLAGS, ...flags, `--user-data-dir=${this.profile}`, 'about:blank'],
      {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true});
    this.ended = new Promise(done => this.chromium.on('exit', done).on('error', done));
    process.on('exit', this.kill);
    const page = new Page(this.chromium);
    this.attached = page.attach().then(() => page);
  }

  run(work) {
    return Promise.race([this.attached.then(work), this.ended.then(() => { throw new Error('chromium ended'); })]);
  }

  // With the processes that it started, which otherwise may still write into its profile.
  #signal() {
    try { process.kill(-this.chromium.pid, 'SIGKILL'); } catch { /* it has ended */ }
  }

  #remove() { rmSync(this.profile, {recursive: true, force: true, maxRetries: 10, retryDelay: 100}); }

  // At the end of this process, which cannot wait.
  kill = () => {
    this.#signal();
    this.#remove();
  };

  async end() {
    process.off('exit', this.kill);
    this.#signal();
    await this.ended;
    this.#remove();
  }
}

class Page {
  said = [];        // the page's log, its uncaught errors and its dialogs: {type, text}
  #sent = 0;
  #answers = new Map();
  #waiting = new Map();
  #scripts = [];

  constructor(chromium) {
    const [input, output] = chromium.stdio.slice(3);
    this.write = message => input.write(JSON.stringify(message) + '\0');
    input.on('error', () => {});
    let parts = [];
    output.on('data', bytes => {
      for (let end; (end = bytes.indexOf(0)) >= 0; bytes = bytes.subarray(end + 1)) {
        const message = JSON.parse(Buffer.concat([...parts, bytes.subarray(0, end)]));
        parts = [];
        this.#take(message);
      }
      parts.push(bytes);
    });
  }

  async attach() {
    const {targetInfos} = await this.send('Target.getTargets');
    const {targetId} = targetInfos.find(target => target.type === 'page');
    this.session = (await this.send('Target.attachToTarget', {targetId, flatten: true})).sessionId;
    for (const domain of ['Page', 'Runtime', 'DOM']) await this.send(domain + '.enable');
  }

  #take({id, result, error, method, params}) {
    if (id) {
      const [resolve, reject] = this.#answers.get(id);
      this.#answers.delete(id);
      error ? reject(new Error(error.message)) : resolve(result);
    } else if (method === 'Runtime.consoleAPICalled')
      this.said.push({type: params.type, text: params.args.map(a => a.value ?? a.description ?? '').join(' ')});
    else if (method === 'Runtime.exceptionThrown')
      this.said.push({type: 'exception',
        text: params.exceptionDetails.exception?.description ?? params.exceptionDetails.text});
    else if (method === 'Page.javascriptDialogOpening') {
      this.said.push({type: 'dialog', text: params.message});
      this.send('Page.handleJavaScriptDialog', {accept: true});
    } else {
      this.#waiting.get(method)?.(params);
      this.#waiting.delete(method);
    }
  }

  // Any method of the protocol.
  send(method, params = {}) {
    const id = ++this.#sent;
    this.write({id, method, params, sessionId: this.session});
    return new Promise((resolve, reject) => this.#answers.set(id, [resolve, reject]));
  }

  event(method) {
    return new Promise(resolve => this.#waiting.set(method, resolve));
  }

  // JavaScript that runs in each page before its own.
  async before(script) {
    this.#scripts.push((await this.send('Page.addScriptToEvaluateOnNewDocument', {source: script})).identifier);
  }

  // As new: empty, without history, scripts, a size and a log, and the mouse is in its corner.
  async clear() {
    for (const identifier of this.#scripts.splice(0))
      await this.send('Page.removeScriptToEvaluateOnNewDocument', {identifier});
    await this.open('about:blank');
    await this.send('Page.resetNavigationHistory');
    await this.send('Emulation.clearDeviceMetricsOverride');
    await this.send('Input.dispatchMouseEvent', {type: 'mouseMoved', x: 0, y: 0});
    this.said.splice(0);
  }

  async open(url) {
    const loaded = this.event('Page.loadEventFired');
    await this.send('Page.navigate', {url});
    await loaded;
  }

  // The value of an expression, or of its promise; as JSON.
  async value(expression) {
    const {result, exceptionDetails: failed} =
      await this.send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true});
    if (failed) throw new Error(failed.exception?.description ?? failed.text);
    return result.value;
  }

  // Waits until an expression is true.
  async until(expression) {
    while (!(await this.value(expression))) await new Promise(again => setTimeout(again, 20));
  }

  // Selects a file in an <input type=file>.
  async choose(selector, file) {
    const {root} = await this.send('DOM.getDocument', {depth: 0});
    const {nodeId} = await this.send('DOM.querySelector', {nodeId: root.nodeId, selector});
    await this.send('DOM.setFileInputFiles', {nodeId, files: [resolve(file)]});
  }
}
