// What flame graphs consist of: the boxes of a tree, and of calls in time order.  groups.js has those of grouped contexts.
//
// A box is {x, width, row, id, fn}; x and width are shares of everything.  A run also has the contexts or calls in it,
// `many`, and the `range` that a click zooms to; its id is negative.  Those of trees have `count` and `sample`, too.
const runId = first => -2 - first;
const sumOf = (box, figures) => (box.many || [box.id]).reduce((sum, i) => sum + figures[i], 0);

// The runs of a picture: neighbours too narrow to draw, and below them their callees, a box in each row.  All are found in one
// pass over the tree, whose nodes come after their callers; `many` is made when something asks for it.
class Runs {
  constructor(tree) {
    this.tree = tree;
    this.found = [null];  // by number
  }
  add(many) {
    const {tree} = this, left = tree.x(many[0]);
    this.of ??= new Uint32Array(tree.n);  // by node: the number of its box, 0: none
    const box = this.box(left, tree.depth[many[0]]);
    let sum = 0;
    for (const i of many) {
      this.of[i] = box.number;
      sum += tree.weight[i];
    }
    box.range = [left, left + sum / (tree.weight[0] || 1)];
  }
  box(x, row) {
    const box = new RunBox(this, x, row, this.found.length);
    this.found.push(box);
    return box;
  }
  boxes() {
    const {tree: {parent, weight, n}, of, found} = this, whole = weight[0] || 1;
    for (let i = 1; of && i < n; i++) {
      if (!weight[i]) continue;
      let box;
      if (of[i]) box = found[of[i]];
      else if (of[parent[i]]) {
        const above = found[of[parent[i]]];
        box = above.below ??= this.box(above.x, above.row + 1);
        box.range = above.range;
        of[i] = box.number;
      } else continue;
      if (box.count % box.step === 0) box.take(i);
      box.count++;
      box.width += weight[i] / whole;
    }
    return found.slice(1);
  }
  // The nodes of each box.
  lists() {
    if (this.known) return this.known;
    const {of, found} = this, known = this.known = found.map(box => box && new Uint32Array(box.count)), n = new Uint32Array(found.length);
    for (let i = 1; i < of.length; i++) if (of[i]) known[of[i]][n[of[i]]++] = i;
    return known;
  }
}
// sample: nodes from all of it, twice SAMPLES at most
class RunBox {
  constructor(runs, x, row, number) {
    Object.assign(this, {runs, x, row, number, width: 0, count: 0, fn: NONE, sample: [], step: 1, range: null, below: null, id: 0});
  }
  take(i) {
    if (!this.count) this.id = runId(i);
    if (this.sample.length === 2 * SAMPLES) {
      this.sample = this.sample.filter((_, at) => at % 2 === 0);
      this.step *= 2;
      if (this.count % this.step) return;
    }
    this.sample.push(i);
  }
  get many() { return this.runs.lists()[this.number]; }
}

// The boxes of a tree.
class TreeBoxes {
  constructor(tree) {
    this.tree = tree;
    this.rows = tree.deepest + 1;
    this.top = 0;
    this.titles = [];
  }
  visible(from, to, least) {
    const {tree} = this, {left, weight, child, children, depth, fn} = tree, whole = weight[0] || 1;
    const found = [], stack = [0], runs = new Runs(tree);
    while (stack.length) {
      const i = stack.pop();
      tree.laid(i);
      found.push({x: left[i], width: tree.width(i), row: depth[i], id: i, fn: fn[i]});
      let first = -1;  // of neighbours that are narrow
      const end = c => {
        if (first >= 0) this.addNarrow(runs, stack, tree.isByWeight ? children.subarray(first, c) : children.subarray(first, c).filter(j => weight[j]));
        first = -1;
      };
      let c = child[i];
      for (; c < child[i + 1]; c++) {
        const j = children[c], width = weight[j] / whole;
        if (left[j] >= to || (!width && tree.isByWeight)) break;
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
    return [...found, ...runs.boxes()];
  }
  addNarrow(runs, stack, run) {
    if (run.length === 1) stack.push(run[0]);
    else if (run.length) runs.add(run);
  }
  cost(box, k) { return sumOf(box, this.tree.total[k]); }
  matches(box, matches) { return box.many ? box.many.some(i => matches[this.tree.fn[i]]) : matches[box.fn]; }
  fnOf(i) { return this.tree.fn[i]; }
  own({id}) { return this.tree.weight[id] ? this.tree.own[id] / this.tree.weight[id] : 0; }
  // All boxes of a function.
  instances(fn) {
    const {tree} = this, found = [];
    for (let i = 1; i < tree.n; i++) if (tree.fn[i] === fn && tree.weight[i]) found.push(i);
    return found;
  }
  range(i) { return [this.tree.x(i), this.tree.x(i) + this.tree.width(i)]; }
  row(i) { return this.tree.depth[i]; }
  parent(i) { return i ? this.tree.parent[i] : -1; }
  firstChild(i) {
    this.tree.laid(i);
    return this.tree.child[i] < this.tree.child[i + 1] ? this.tree.children[this.tree.child[i]] : -1;
  }
  sibling(i, step) {
    if (!i) return -1;
    const {parent, child, children} = this.tree, above = parent[i];
    this.tree.laid(above);
    const at = children.indexOf(i, child[above]) + step;
    return at >= child[above] && at < child[above + 1] ? children[at] : -1;
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
