// What flame graphs consist of: the boxes of a tree, and of calls in time order.  groups.js has those of grouped contexts.
//
// A box is {x, width, row, id, fn}; x and width are shares of everything.  A run also has the contexts or calls in it,
// `many`, and the `range` that a click zooms to; its id is negative.  Those of trees have `count` and `sample`, too.
const runId = first => -2 - first;
const sumOf = (box, figures) => (box.many || [box.id]).reduce((sum, i) => sum + figures[i], 0);

// Adds nodes up by row.
const addRows = (depth, weight, from, stop, widths, counts, firsts) => {
  for (let j = from; j < stop; j++) {
    const cost = weight[j];
    if (!cost) continue;
    const row = depth[j];
    widths[row] += cost;
    if (!counts[row]++) firsts[row] = j;
  }
};
// Neighbours too narrow to draw, and below them their callees, a box in each row.
class Run {
  // many: the neighbours; or {of, least}: the callees of a node that are narrower, if they are many, in order of nodes
  constructor(tree, x, many) {
    Object.assign(this, {tree, many, known: null});
    const {depth, weight, span, deepest} = tree, whole = weight[0] || 1;
    const widths = tree.widthsOfRow ??= new Float64Array(deepest + 2), counts = tree.countsOfRow ??= new Uint32Array(deepest + 2), firsts = tree.firstsOfRow ??= new Uint32Array(deepest + 2);
    if (!Array.isArray(many) && !many.length) {
      const {of, least, n} = many, found = this.many = new Uint32Array(n);
      for (let c = of + 1, at = 0; c < of + span[of]; c += span[c]) if (weight[c] && weight[c] / whole < least) found[at++] = c;
    }
    for (let at = 0; at < this.many.length;) {
      const first = this.many[at];
      let stop = first + span[first];
      for (at++; this.many[at] === stop; at++) stop += span[stop];
      addRows(depth, weight, first, stop, widths, counts, firsts);
    }
    const top = depth[this.many[0]], range = [x, x + widths[top] / whole];
    this.boxes = [];
    for (let row = top; counts[row]; row++) {
      this.boxes.push(new RunBox(this, x, row, widths[row] / whole, counts[row], firsts[row], range));
      widths[row] = counts[row] = 0;
    }
    this.choose();
  }
  // Gives boxes their samples: a few nodes of all of the run.
  choose() {
    const {many, boxes, tree: {depth, weight, span}} = this, top = boxes[0].row, step = Math.ceil(many.length / SAMPLES);
    for (let k = 0; k < many.length; k += step)
      for (let j = many[k], n = 0; j < many[k] + span[many[k]] && n < 8 * SAMPLES; j++, n++) {
        const {sample} = boxes[depth[j] - top] || {};
        if (weight[j] && sample.length < 2 * SAMPLES) sample.push(j);
      }
    for (const box of boxes) if (!box.sample.length) box.sample.push(box.first);
  }
  // The nodes of each box.
  lists() {
    if (this.known) return this.known;
    const {many, boxes: [{row: top}], tree: {depth, weight, span}} = this, known = this.known = this.boxes.map(box => new Uint32Array(box.count)), n = new Uint32Array(known.length);
    for (const i of many) for (let j = i; j < i + span[i]; j++) if (weight[j]) known[depth[j] - top][n[depth[j] - top]++] = j;
    return known;
  }
}
class RunBox {
  constructor(run, x, row, width, count, first, range) {
    this.x = x;
    this.width = width;
    this.row = row;
    this.id = runId(first);
    this.fn = NONE;
    this.run = run;
    this.count = count;
    this.first = first;
    this.range = range;
    this.sample = [];
    this.mean = null;
  }
  get many() { return this.run.lists()[this.row - this.run.boxes[0].row]; }
}

// Where the first item is that passes, as do all after it.
const firstOf = (items, passes) => {
  let from = 0;
  for (let to = items.length; from < to;) {
    const middle = (from + to) >> 1;
    if (passes(items[middle])) to = middle;
    else from = middle + 1;
  }
  return from;
};
// The boxes of a tree.
class TreeBoxes {
  constructor(tree) {
    this.tree = tree;
    this.rows = tree.deepest + 1;
    this.top = 0;
    this.titles = [];
  }
  visible(from, to, least) {
    const {tree} = this, {left, weight, depth, fn} = tree, whole = weight[0] || 1;
    const found = [], stack = [0], isWhole = tree.isByWeight && from <= 0 && to >= 1;
    while (stack.length) {
      const i = stack.pop();
      found.push({x: left[i], width: tree.width(i), row: depth[i], id: i, fn: fn[i]});
      if (isWhole) {
        const {found: wide, narrow, first, x} = tree.wide(i, least);
        stack.push(...wide);
        if (narrow === 1) stack.push(first);
        else if (narrow) found.push(...new Run(tree, x, {of: i, least, n: narrow}).boxes);
        continue;
      }
      const children = tree.children(i);
      if (tree.isByWeight) {  // all that are narrow are neighbours
        const begin = firstOf(children, j => left[j] + weight[j] / whole > from), stop = firstOf(children, j => left[j] >= to || !weight[j]);
        const narrow = Math.max(begin, Math.min(stop, firstOf(children, j => weight[j] / whole < least)));
        for (let c = begin; c < narrow; c++) stack.push(children[c]);
        this.addNarrow(found, stack, children.subarray(narrow, stop));
        continue;
      }
      let first = -1;  // of neighbours that are narrow
      const end = c => {
        if (first >= 0) this.addNarrow(found, stack, children.subarray(first, c).filter(j => weight[j]));
        first = -1;
      };
      let c = 0;
      for (; c < children.length; c++) {
        const j = children[c], width = weight[j] / whole;
        if (left[j] >= to) break;
        if (!width || left[j] + width <= from) continue;
        if (width < least) {
          if (first < 0) first = c;
        } else {
          end(c);
          stack.push(j);
        }
      }
      end(c);
    }
    return found;
  }
  addNarrow(found, stack, run) {
    if (run.length === 1) stack.push(run[0]);
    else if (run.length) found.push(...new Run(this.tree, this.tree.left[run[0]], run).boxes);
  }
  cost(box, k) { return sumOf(box, this.tree.total[k]); }
  matches(box, matches) { return box.many ? box.many.some(i => matches[this.tree.fn[i]]) : matches[box.fn]; }
  fnOf(i) { return this.tree.fn[i]; }
  own({id}) { return this.tree.weight[id] ? this.tree.own[id] / this.tree.weight[id] : 0; }
  // All boxes of a function.
  instances(fn) { return this.tree.of(fn).filter(i => this.tree.weight[i]); }
  range(i) { return [this.tree.x(i), this.tree.x(i) + this.tree.width(i)]; }
  row(i) { return this.tree.depth[i]; }
  parent(i) { return i ? i - this.tree.up[i] : -1; }
  firstChild(i) { return this.tree.children(i)[0] ?? -1; }
  sibling(i, step) {
    if (!i) return -1;
    const children = this.tree.children(i - this.tree.up[i]);
    return children[children.indexOf(i) + step] ?? -1;
  }
}

// The calls of a page: arrays by call, thread by thread; `deepest` by thread, -1: it has none; `parents`: the caller, -1: none.
const callsOf = data => {
  const {column, head} = data;
  const calls = head.samples ? callsOfSamples(data) : {thread: column("call thread"), fn: column("call function"), depth: column("call depth"), duration: column("call duration")};
  calls.tracks = tracksOf(data);
  const {thread, depth} = calls, n = thread.length;
  if (!calls.begin) {
    const steps = column("call begin"), begin = calls.begin = new Float64Array(n);
    for (let i = 0; i < n; i++) begin[i] = steps[i] + (i && thread[i] === thread[i - 1] ? begin[i - 1] : 0);
  }
  const deepest = calls.deepest = new Float64Array(head.time.threads.length).fill(-1), parents = calls.parents = new Int32Array(n).fill(-1);
  const open = [];  // by depth: the last call
  for (let i = 0, t = -1, top = -1; i < n; i++) {
    const d = depth[i];
    if (thread[i] !== t) [t, top] = [thread[i], -1];
    if (d > deepest[t]) deepest[t] = d;
    if (d && d - 1 <= top && open[d - 1] !== undefined) parents[i] = open[d - 1];
    for (let k = top + 1; k < d; k++) open[k] = undefined;
    open[d] = i;
    top = d;
  }
  return calls;
};

// The threads that are collapsed at first: the least busy ones, if the rows of all do not fit the height; and counters that fill it.
const foldsToFit = ({threads}, {thread, depth, duration, deepest, tracks}, height) => {
  const busy = new Float64Array(threads.length), folded = new Set(threads);
  for (let i = 0; i < thread.length; i++) if (!depth[i]) busy[thread[i]] += duration[i];
  let left = height - AXIS - threads.length * ROW;
  if (tracks?.counters.length) {
    const needed = (1 + tracks.counters.length * counterHigh(tracks, height)) * ROW, fits = needed <= height / 2;
    left -= fits ? needed : ROW;
    if (!fits) folded.add(COUNTERS);
  }
  for (const t of [...threads.keys()].sort((a, b) => busy[b] - busy[a] || a - b)) {
    const needed = (deepest[t] + 1) * LOWEST + laneRows(tracks, t) * ROW;
    if (needed > left && folded.size - folded.has(COUNTERS) < threads.length) break;
    left -= needed;
    folded.delete(threads[t]);
  }
  return folded;
};

// The calls of one thread or of all, each thread below the one before.
class TimeBoxes {
  // time: head.time; calls: callsOf(data); isShown: of a thread's name; folded: names of those of which only the title is shown; isKept: of a function, others
  // are faint and do not count; titleOf: what stands above the calls of a thread
  // height: of the window
  constructor(time, calls, isShown, folded, isKept, titleOf = name => name, height = 400) {
    this.isKept = isKept;
    this.isTimed = true;
    this.time = time;
    this.calls = calls;
    for (const name of ["thread", "fn", "depth", "begin", "duration", "deepest", "parents"]) this[name] = calls[name];
    this.titles = [];
    this.strips = [];  // of collapsed threads: thread, row
    this.first = new Float64Array(time.threads.length);
    this.top = AXIS;
    let row = 0;
    const {deepest} = this, {tracks} = calls;
    this.lanes = tracks && new Lanes(calls, time);
    const counters = tracks ? tracks.counters.filter(({owner, thread}) => deepest[thread] < 0 || isShown(owner)) : [];
    if (counters.length) {
      const isFolded = folded.has(COUNTERS);
      this.titles.push([row++, COUNTERS, `${isFolded ? "▸" : "▾"} Counters (${exact(counters.length)})`]);
      if (!isFolded) row = this.lanes.addCounters(row, counters, counterHigh(tracks, height));
    }
    time.threads.forEach((name, t) => {
      this.first[t] = -1;
      if ((deepest[t] < 0 && !laneRows(tracks, t)) || !isShown(name)) return;
      const isFolded = folded.has(name);
      this.titles.push([row, name, `${isFolded ? "▸" : "▾"} ${titleOf(name)}`]);
      if (isFolded) this.strips.push([t, row++]);
      else row = this.first[t] = tracks ? this.lanes.addThread(row + 1, t) : row + 1;
      if (!isFolded) row += deepest[t] + 1;
    });
    this.rows = row;
    this.above = new Uint32Array(row + 1);  // by row: titles and lanes above it, which are higher than rows of calls
    for (const [at] of this.titles) this.above[at + 1] = 1;
    for (const {row: at, high} of this.lanes?.all || []) this.above.fill(1, at + 1, at + high + 1);
    for (let at = 0; at < row; at++) this.above[at + 1] += this.above[at];
  }
  visible(from, to, least) {
    const length = this.time.length || 1, {begin, duration, depth, thread, first, fn} = this;
    const found = [], runs = new Array(this.rows).fill(null), begun = [];  // runs: the last one of each row
    const end = run => {
      run.width = run.range[1] - run.x;
      if (run.many.length === 1) Object.assign(run, {id: run.many[0], fn: fn[run.many[0]], many: undefined});
    };
    for (let i = 0; i < fn.length; i++) {
      const top = first[thread[i]];
      if (top < 0) continue;
      const x = begin[i] / length, width = duration[i] / length;
      if (x > to || x + width < from) continue;
      const row = top + depth[i], run = runs[row], isSmall = width < least;
      if (run && isSmall && x < run.range[1] + least) {
        run.many.push(i);
        if (x + width > run.range[1]) run.range[1] = x + width;
        continue;
      }
      runs[row] = isSmall ? {x, width, row, id: runId(i), fn: NONE, many: [i], range: [x, x + width]} : null;
      if (isSmall) begun.push(runs[row]);
      found.push(isSmall ? runs[row] : {x, width, row, id: i, fn: fn[i]});
    }
    for (const run of begun) end(run);
    return found;
  }
  // When collapsed threads are in a call: [row, [from, to, from, to, ...] as shares of everything].
  busy(least) {
    const length = this.time.length || 1, rows = new Map(this.strips.map(([t, row]) => [t, [row, []]]));
    if (!rows.size) return [];
    for (let i = 0; i < this.fn.length; i++) {
      const found = this.depth[i] ? undefined : rows.get(this.thread[i])?.[1];
      if (!found) continue;
      const x = this.begin[i] / length, end = x + this.duration[i] / length;
      if (found.length && x < found.at(-1) + least) found[found.length - 1] = Math.max(found.at(-1), end);
      else found.push(x, end);
    }
    return [...rows.values()];
  }
  matches(box, matches) { return box.many ? box.many.some(i => matches[this.fn[i]]) : matches[box.fn]; }
  fnOf(i) { return this.fn[i]; }
  // Calls shorter than a nanosecond or a tick have no duration.
  own({id}) {
    if (!this.inside) {
      this.inside = new Float64Array(this.fn.length);
      for (let i = 0; i < this.fn.length; i++) if (this.parents[i] >= 0) this.inside[this.parents[i]] += this.duration[i];
    }
    return this.duration[id] ? 1 - this.inside[id] / this.duration[id] : 0;
  }
  isFaint({fn, many}) { return many ? !many.some(i => this.isKept(this.fn[i])) : !this.isKept(fn); }
  // Self and inclusive time and calls of the first `n` functions from one point to another, in ticks: the self time of
  // kept functions, in them and in their callers.
  within([from, to], n) {
    const length = this.time.length || 1, {begin, duration, fn, parents} = this;
    const found = {own: new Float64Array(n), all: new Float64Array(n), calls: new Float64Array(n), sum: 0, n: 0};
    const share = i => Math.min(begin[i] + duration[i], to * length) - Math.max(begin[i], from * length);
    const own = new Float64Array(fn.length), all = new Float64Array(fn.length);
    for (let i = fn.length - 1; i >= 0; i--) {  // callees before callers
      const time = this.first[this.thread[i]] < 0 ? -1 : share(i), above = parents[i];
      if (time < 0) continue;
      const isKept = this.isKept(fn[i]), self = isKept ? time + own[i] : 0;
      all[i] += self;
      if (above >= 0) {
        own[above] -= time;
        all[above] += all[i];
      } else found.sum += all[i];
      found.n += isKept;
      if (fn[i] >= n) continue;
      let outer = above;
      while (outer >= 0 && fn[outer] !== fn[i]) outer = parents[outer];
      found.own[fn[i]] += self;
      found.calls[fn[i]] += isKept;
      if (outer < 0) found.all[fn[i]] += all[i];
    }
    return found;
  }
  range(i) {
    const length = this.time.length || 1;
    return [this.begin[i] / length, (this.begin[i] + this.duration[i]) / length];
  }
  row(i) { return this.first[this.thread[i]] + this.depth[i]; }
  parent(i) { return this.parents[i]; }
  firstChild(i) { return i + 1 < this.fn.length && this.parents[i + 1] === i ? i + 1 : -1; }
  sibling(i, step) {
    for (let j = i + step; j >= 0 && j < this.fn.length && this.thread[j] === this.thread[i]; j += step) {
      if (this.depth[j] < this.depth[i]) return -1;
      if (this.depth[j] === this.depth[i]) return j;
    }
    return -1;
  }
}
