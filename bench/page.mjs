// CPU time of the main thread of Chromium while it opens a page of `fastprof report`, and for a zoom, a search and
// hovering, for each tab, (timelines) a range of times and each transform, in milliseconds, with the wall-clock time until the next frame: .viewers/node bench/page.mjs PAGE [RUNS]
// PROFILE=1 prints the functions with the largest self times instead.
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {withPage} from '../tests/viewers/browser.mjs';

const [file, runs = '5'] = process.argv.slice(2);
const url = pathToFileURL(resolve(file)).href;
const frame = 'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))';
const mouse = (page, x, y, type) => page.send('Input.dispatchMouseEvent', {type, x, y, button: 'left', clickCount: 1});
// the middle of the largest box of row 3, on the screen
const BOX = `(() => {
  const {flame} = fastprof, box = flame.canvas.getBoundingClientRect();
  const d = flame.drawn.filter(d => d.row === 3).sort((a, b) => b.w - a.w)[0];
  return [box.left + d.x + d.w / 2, box.top + d.y + 9];
})()`;

const steps = {
  // In its first idle time a page makes what may be looked at next, in parts of a few milliseconds.  Nobody is at a box as
  // early as the next step would be, so this has a row of its own.
  async idle() { await new Promise(done => setTimeout(done, 400)); },
  async hover(page) {
    const [x, y] = await page.value(BOX);
    await mouse(page, x, y, 'mouseMoved');
  },
  async zoom(page) {
    const [x, y] = await page.value(BOX);
    for (const type of ['mousePressed', 'mouseReleased']) await mouse(page, x, y, type);
  },
  async back(page) { await page.value('document.getElementById("reset").click()'); },
  async search(page) {
    await page.value('document.getElementById("search").focus()');
    await page.send('Input.insertText', {text: '1'});
  },
  async clear(page) {
    for (const type of ['keyDown', 'keyUp']) await page.send('Input.dispatchKeyEvent', {type, key: 'Escape', code: 'Escape'});
  },
  ...Object.fromEntries(['inverted', 'sandwich', 'graph', 'table', 'time', 'range', 'heavy'].map(view => [view, page => page.value(`(() => {
    if ('${view}' === 'range') fastprof.flame.boxes.isTimed && fastprof.flame.on.range([0.4, 0.6]);
    else document.querySelector('#tabs [data-view=${view}]')?.click();
  })()`)])),
  // transforms, of the function with the largest self cost; the last one is taken back
  ...Object.fromEntries(['hide', 'focus', 'collapse-object', 'collapse-recursion', 'undo'].map(kind => [kind, page => page.value(`(() => {
    const {menu, data, transforms, table} = fastprof, {head: {texts}, column} = data, [fn] = table.order;
    if ('${kind}' === 'undo') return void menu.undo();
    transforms.steps = [];
    const exact = text => '^' + text.replace(/[.*+?^\${}()|[\]\\]/g, '\\$&') + '$';
    menu.do(['${kind}', '${kind}' === 'collapse-recursion' ? '' : '${kind}' === 'collapse-object' ? '.' : exact(texts[column('function name')[fn]])]);
  })()`)])),
};

async function metrics(page) {
  const {metrics} = await page.send('Performance.getMetrics');
  return Object.fromEntries(metrics.map(({name, value}) => [name, value]));
}

const found = {};
const note = (name, before, after, wall) =>
  (found[name] ??= []).push([(after.TaskDuration - before.TaskDuration) * 1000, (after.ScriptDuration - before.ScriptDuration) * 1000, wall]);

function profiled({nodes, samples, timeDeltas}) {
  const by = new Map(nodes.map(node => [node.id, node.callFrame])), self = new Map();
  samples.forEach((id, i) => {
    const {functionName, lineNumber} = by.get(id), name = `${functionName || '(anonymous)'}:${lineNumber}`;
    self.set(name, (self.get(name) || 0) + timeDeltas[i] / 1000);
  });
  for (const [name, ms] of [...self].sort((a, b) => b[1] - a[1]).slice(0, 25)) console.log(ms.toFixed(1).padStart(8), name);
}

for (let i = 0; i < Number(runs); i++)
  await withPage(async page => {
    await page.send('Emulation.setDeviceMetricsOverride', {width: 1400, height: 900, deviceScaleFactor: 1, mobile: false});
    await page.send('Performance.enable', {timeDomain: 'threadTicks'});
    if (process.env.PROFILE) {
      await page.send('Profiler.enable');
      await page.send('Profiler.start');
    }
    let before = await metrics(page), begin = performance.now();
    await page.open(url);
    await page.until('document.documentElement.dataset.ready');
    await page.value(frame);
    note('open', before, await metrics(page), performance.now() - begin);
    if (process.env.PROFILE) profiled((await page.send('Profiler.stop')).profile);
    for (const [name, step] of Object.entries(steps)) {
      if (process.env.PROFILE) await page.send('Profiler.start');
      [before, begin] = [await metrics(page), performance.now()];
      await step(page);
      await page.value(frame);
      note(name, before, await metrics(page), performance.now() - begin);
      if (process.env.PROFILE) {
        console.log(`-- ${name}`);
        profiled((await page.send('Profiler.stop')).profile);
      }
    }
  });
console.log('step    CPU:  least   median     most  script: least  median    most  wall:  least   median     most');
for (const [name, figures] of Object.entries(found)) {
  const shown = [0, 1, 2].map(k => {
    const sorted = figures.map(figure => figure[k]).sort((a, b) => a - b);
    return [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map(ms => ms.toFixed(0).padStart(9)).join('');
  });
  console.log(name.padEnd(7), ...shown);
}
