// Samples in order of time.  A function is drawn as long as it is in consecutive samples of its thread, one box below its
// caller: a sample lasts until the next one of the thread, but not longer than LASTS times the median distance of samples.
//
//   0 ms main > f       main  0 .............. 30 ms
//   10 ms main > f      f     0 ..... 20 ms
//   20 ms main > g      g              20 .... 30
const LASTS = 3;

// As calls: {names of threads, thread, fn, depth, begin, duration: arrays by call, thread by thread, callers first}; and the
// samples: {time, value, context: arrays, thread: of each}.
const callsOfSamples = data => {
  const {head, column} = data, {threads} = head;
  const runs = column("sample run"), context = column("sample context"), steps = column("sample time"), value = column("sample value");
  const up = column("context up"), functions = column("context function"), roots = column("context thread");
  const nContexts = up.length, depth = new Uint32Array(nContexts), threadOf = new Uint32Array(nContexts);
  for (let i = 0; i < nContexts; i++) {
    depth[i] = up[i] ? depth[i - up[i]] + 1 : 0;
    threadOf[i] = up[i] ? threadOf[i - up[i]] : roots[i];
  }
  const n = context.length, time = new Float64Array(n), thread = new Uint32Array(n), index = new Map(), names = [];
  const found = {thread: [], fn: [], depth: [], begin: [], duration: []};
  const open = [], opened = [];  // by depth: the context, and its call
  let at = 0;
  const close = (least, now) => {
    while (open.length > least) {
      const call = opened.pop();
      found.duration[call] = now - found.begin[call];
      open.pop();
    }
  };
  const gaps = new Float64Array(n);
  let nGaps = 0;
  for (const length of runs) {
    for (const end = at + length, first = at; at < end; at++) {
      time[at] = steps[at] + (at > first ? time[at - 1] : 0);
      if (at > first && steps[at]) gaps[nGaps++] = steps[at];
    }
  }
  const usual = nGaps ? gaps.subarray(0, nGaps).sort()[nGaps >> 1] : head.samples.length / 1000, longest = LASTS * usual;
  at = 0;
  for (const length of runs) {
    const name = threads[threadOf[context[at]]];
    if (!index.has(name)) index.set(name, names.push(name) - 1);
    const track = index.get(name);
    for (let i = at; i < at + length; i++) {
      const gap = i > at ? time[i] - time[i - 1] : 0, path = [];
      thread[i] = track;
      if (gap > longest) close(0, time[i - 1] + longest);
      for (let c = context[i]; up[c]; c -= up[c]) path.push(c);
      path.reverse();
      let same = 0;
      while (same < open.length && same < path.length && open[same] === path[same]) same++;
      close(same, time[i]);
      for (let d = same; d < path.length; d++) {
        open.push(path[d]);
        opened.push(found.fn.length);
        found.thread.push(track);
        found.fn.push(functions[path[d]]);
        found.depth.push(d);
        found.begin.push(time[i]);
        found.duration.push(0);
      }
    }
    close(0, Math.min(time[at + length - 1] + usual, Math.max(head.samples.length, time[at + length - 1])));
    at += length;
  }
  const {samples} = head;
  head.time ??= {threads: names, ticks_per_second: 1e9, length: samples.length, shortest: 0, left_out: 0};
  return {thread: Uint32Array.from(found.thread), fn: Uint32Array.from(found.fn), depth: Uint32Array.from(found.depth), begin: Float64Array.from(found.begin),
    duration: Float64Array.from(found.duration), samples: {time, value, context, thread, up, functions}};
};

// What part of the samples a page has.
const sampledPart = ({samples}) => samples && samples.all > samples.n ? ` ${exact(samples.n)} of ${exact(samples.all)} samples are on this page, evenly chosen.` : "";

class SampleBoxes extends TimeBoxes {
  // The samples in a range, of the threads that are shown.
  *samplesIn([from, to]) {
    const {time, thread} = this.calls.samples, length = this.time.length || 1;
    for (let i = 0; i < time.length; i++) if (this.first[thread[i]] >= 0 && time[i] >= from * length && time[i] <= to * length) yield i;
  }
  // Self and inclusive cost of the first `n` functions in a range, nested ones counted once; of kept functions and their callers.
  within(range, n) {
    const {value, context, up, functions} = this.calls.samples;
    const found = {own: new Float64Array(n), all: new Float64Array(n), sum: 0, n: 0}, last = new Int32Array(n).fill(-1);
    for (const i of this.samplesIn(range)) {
      const leaf = functions[context[i]];
      if (up[context[i]] && leaf !== NONE && !this.isKept(leaf)) continue;
      found.n++;
      found.sum += value[i];
      if (up[context[i]] && leaf < n) found.own[leaf] += value[i];
      for (let c = context[i]; up[c]; c -= up[c]) {
        const fn = functions[c];
        if (fn >= n || last[fn] === i) continue;
        last[fn] = i;
        found.all[fn] += value[i];
      }
    }
    return found;
  }
  // [functions from the root, cost]
  stacks(range) {
    const {value, context, up, functions} = this.calls.samples, found = [];
    for (const i of this.samplesIn(range)) {
      const stack = [];
      for (let c = context[i]; up[c]; c -= up[c]) stack.push(functions[c]);
      if (stack.length) found.push([stack.reverse(), value[i]]);
    }
    return found;
  }
}
