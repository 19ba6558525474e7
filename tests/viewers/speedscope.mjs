// A file in speedscope: its own page imports it, and its own export is summed.
//
//   node viewer.mjs speedscope FILE
//   node viewer.mjs speedscope --time FILE       returns the milliseconds that it reports for the import
//
// returns [{name, unit, weight, functions: {NAME: {self, total, file, line}}}, ...], a profile each.  `total` counts a
// recursive function once.  Refused: speedscope's message.
import {join} from 'node:path';
import {inKeptPage} from './browser.mjs';

const PAGE = join(import.meta.dirname, '../../.viewers/node_modules/speedscope/dist/release/index.html');

// Self and total weights by name of an evented profile.
function functions({events, startValue}, frames) {
  const of = new Map(), stack = [], open = new Map();
  let last = startValue;
  for (const {type, frame, at} of events) {
    const {name, file, line} = frames[frame];
    if (!of.has(name)) of.set(name, {self: 0, total: 0, file, line});
    for (const inside of open.keys()) of.get(inside).total += at - last;
    if (stack.length) of.get(stack.at(-1)).self += at - last;
    last = at;
    if (type === 'O') {
      stack.push(name);
      open.set(name, (open.get(name) ?? 0) + 1);
    } else {
      stack.pop();
      open.set(name, open.get(name) - 1);
      if (!open.get(name)) open.delete(name);
    }
  }
  return Object.fromEntries(of);
}

// Opens a file.  Returns speedscope's message about the time that it took.
async function imported(page, file) {
  await page.before(`
    URL.createObjectURL = (make => blob => make.call(URL, window.exported = blob))(URL.createObjectURL);
    HTMLAnchorElement.prototype.click = () => {};`);
  await page.open('file://' + PAGE);
  await page.until(`!!document.querySelector('#file')`);
  await page.choose('#file', file);
  for (;; await new Promise(again => setTimeout(again, 20)))
    for (const {type, text} of page.said) {
      if (type === 'dialog' || type === 'exception' || text.startsWith('Failed to load format')) throw new Error(text);
      if (text.startsWith('import: ')) return text;
    }
}

async function exported(page) {
  await page.until(`(window.dispatchEvent(new KeyboardEvent('keydown', {key: 's', ctrlKey: true})), !!window.exported)`);
  return JSON.parse(await page.value('window.exported.text()'));
}

export default (...args) => inKeptPage(async page => {
  const [file, time] = args.reverse();
  const took = await imported(page, file);
  if (time) return parseFloat(took.slice('import: '.length));
  const {profiles, shared} = await exported(page);
  return profiles.map(profile => ({
    name: profile.name,
    unit: profile.unit,
    weight: profile.endValue - profile.startValue,
    functions: functions(profile, shared.frames),
  }));
});
