// A file in chrome://tracing: the importer of Catapult's trace viewer.
//
//   node viewer.mjs catapult FILE
//
// returns {threads: [{name, functions: {NAME: {calls, self, total}}}, ...], samples: [{tid, at, weight, stack}, ...],
// warnings: [TEXT, ...]}, in microseconds.  `total` counts a recursive function once; a stack has the
// outermost name first.  Refused: Catapult's message.
import {join} from 'node:path';
import {inKeptPage} from './browser.mjs';

const PAGE = join(import.meta.dirname, '../../.viewers/perfetto/assets/catapult_trace_viewer.html');

// Runs in the page.
async function imported() {
  const file = document.querySelector('#given').files[0], bytes = new Uint8Array(await file.arrayBuffer());
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const model = new tr.Model();
  new tr.importer.Import(model).importTraces([packed ? bytes.buffer : new TextDecoder().decode(bytes)]);
  const threads = [];
  for (const thread of model.getAllThreads()) {
    const functions = {};
    for (const slice of thread.sliceGroup.slices) {
      const of = (functions[slice.title] ??= {calls: 0, self: 0, total: 0});
      let caller = slice.parentSlice;
      while (caller && caller.title !== slice.title) caller = caller.parentSlice;
      of.calls++;
      of.self += 1000 * slice.selfTime;
      if (!caller) of.total += 1000 * slice.duration;
    }
    threads.push({name: thread.userFriendlyName, functions});
  }
  const samples = model.samples.map(sample => (
    {tid: sample.thread.tid, at: 1000 * sample.start, weight: sample.weight,
      stack: sample.getNodesAsArray().map(node => node.title).reverse()}));
  return {threads, samples, warnings: model.importWarnings.map(warning => warning.message)};
}

export default file => inKeptPage(async page => {
  await page.open('file://' + PAGE);
  await page.until(`typeof tr === 'object' && !!tr.Model`);
  await page.value(`document.body.insertAdjacentHTML('beforeend', '<input type=file id=given>')`);
  await page.choose('#given', file);
  return page.value(`(${imported})()`);
});
