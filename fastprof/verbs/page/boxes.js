// What flame graphs consist of: the boxes of a tree, and of calls in time order.  groups.js has those of grouped contexts.
//
// A box is {x, width, row, id, fn}; x and width are shares of everything.  A run also has the contexts or calls in it,
// `many`, and the `range` that a click zooms to; its id is negative.
const runId = first => -2 - first;
const sumOf = (box, figures) => (box.many || [box.id]).reduce((sum, i) => sum + figures[i], 0);

// The boxes of a tree.
class TreeBoxes {
  constructor(tree) {
    this.tree = tree;
    this.rows = tree.deepest + 1;
    this.top = 0;
    this.titles = [];
  }
  visible(from, to, least) {
    const {x, width, child, children, depth, fn} = this.tree;
    const found = [], stack = [0];
    while (stack.length) {
      const i = stack.pop();
      found.push({x: x[i], width: width[i], row: depth[i], id: i, fn: fn[i]});
      let run = [];
      const end = () => {
        if (run.length === 1) stack.push(run[0]);
        else if (run.length) this.addRun(found, run);
        run = [];
      };
      for (let c = child[i]; c < child[i + 1]; c++) {
        const j = children[c];
        if (!width[j] || x[j] >= to || x[j] + width[j] <= from) continue;
        if (width[j] < least) run.push(j);
        else {
          end();
          stack.push(j);
        }
      }
      end();
    }
    return found;
  }
  addRun(found, many) {
    const {x, width, child, children, depth} = this.tree;
    const left = x[many[0]];
    let row = depth[many[0]], range;
    while (many.length) {
      let all = 0, most = 0, n = 0;
      for (let m = 0; m < many.length; m++) {
        const i = many[m];
        all += width[i];
        most += child[i + 1] - child[i];
      }
      range ??= [left, left + all];
      found.push({x: left, width: all, row: row++, id: runId(many[0]), fn: NONE, many, range});
      const below = new Uint32Array(most);
      for (let m = 0; m < many.length; m++) {
        const i = many[m];
        for (let c = child[i]; c < child[i + 1]; c++) {
          below[n] = children[c];
          if (width[children[c]]) n++;
        }
      }
      many = below.subarray(0, n);
    }
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
  range(i) { return [this.tree.x[i], this.tree.x[i] + this.tree.width[i]]; }
  row(i) { return this.tree.depth[i]; }
  parent(i) { return i ? this.tree.parent[i] : -1; }
  firstChild(i) { return this.tree.child[i] < this.tree.child[i + 1] ? this.tree.children[this.tree.child[i]] : -1; }
  sibling(i, step) {
    if (!i) return -1;
    const {parent, child, children} = this.tree, above = parent[i];
    const at = children.indexOf(i, child[above]) + step;
    return at >= child[above] && at < child[above + 1] ? children[at] : -1;
  }
}

// The calls of one thread or of all, each thread below the one before.
class TimeBoxes {
  // isShown: of a thread's name; folded: names of those of which only the title is shown; isKept: of a function, others
  // are faint and do not count; titleOf: what stands above the calls of a thread
  constructor(data, isShown, folded, isKept, titleOf = name => name) {
    const {column, head} = data;
    this.isKept = isKept;
    this.isTimed = true;
    this.time = head.time;
    this.thread = column("call thread");
    this.fn = column("call function");
    this.depth = column("call depth");
    const steps = column("call begin"), begin = this.begin = new Float64Array(steps.length);
    for (let i = 0; i < steps.length; i++) begin[i] = steps[i] + (i && this.thread[i] === this.thread[i - 1] ? begin[i - 1] : 0);
    this.duration = column("call duration");
    this.titles = [];
    this.first = new Float64Array(head.time.threads.length);
    this.top = AXIS;
    let row = 0;
    const deepest = new Float64Array(head.time.threads.length).fill(-1);
    for (let i = 0; i < this.fn.length; i++) deepest[this.thread[i]] = Math.max(deepest[this.thread[i]], this.depth[i]);
    head.time.threads.forEach((name, t) => {
      this.first[t] = -1;
      if (deepest[t] < 0 || !isShown(name)) return;
      const isFolded = folded.has(name);
      this.titles.push([row, name, `${isFolded ? "▸" : "▾"} ${titleOf(name)}`]);
      if (!isFolded) this.first[t] = row + 1;
      row += isFolded ? 1 : deepest[t] + 2;
    });
    this.rows = row;
    this.above = new Uint32Array(row + 1);  // by row: titles above it
    for (const [at] of this.titles) this.above[at + 1] = 1;
    for (let at = 0; at < row; at++) this.above[at + 1] += this.above[at];
    this.parents = new Int32Array(this.fn.length).fill(-1);
    const open = [];
    for (let i = 0; i < this.fn.length; i++) {
      if (i && this.thread[i] !== this.thread[i - 1]) open.length = 0;
      open.length = Math.min(open.length, this.depth[i]);
      this.parents[i] = this.depth[i] && open[this.depth[i] - 1] !== undefined ? open[this.depth[i] - 1] : -1;
      open[this.depth[i]] = i;
    }
  }
  visible(from, to, least) {
    const length = this.time.length || 1, found = [], runs = new Map();
    const end = row => {
      const run = runs.get(row);
      if (run) run.width = run.range[1] - run.x;
      if (run?.many.length === 1) Object.assign(run, {id: run.many[0], fn: this.fn[run.many[0]], many: undefined});
      runs.delete(row);
    };
    for (let i = 0; i < this.fn.length; i++) {
      const first = this.first[this.thread[i]];
      if (first < 0) continue;
      const x = this.begin[i] / length, width = this.duration[i] / length;
      if (x > to || x + width < from) continue;
      const row = first + this.depth[i], run = runs.get(row);
      if (run && width < least && x < run.range[1] + least) {
        run.many.push(i);
        run.range[1] = Math.max(run.range[1], x + width);
        continue;
      }
      end(row);
      if (width < least) {
        runs.set(row, {x, width, row, id: runId(i), fn: NONE, many: [i], range: [x, x + width]});
        found.push(runs.get(row));
      } else found.push({x, width, row, id: i, fn: this.fn[i]});
    }
    for (const row of [...runs.keys()]) end(row);
    return found;
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
