// Sorts part of an array, which usually has few items.
const sort = (items, from, to, before) => {
  if (to - from > 16) {
    items.subarray(from, to).sort(before);
    return;
  }
  for (let i = from + 1; i < to; i++) {
    const item = items[i];
    let at = i;
    for (; at > from && before(items[at - 1], item) > 0; at--) items[at] = items[at - 1];
    items[at] = item;
  }
};

// The context tree of one thread or of all, its totals, and where each context lies from 0 to 1.
//
//   parent, fn, depth    by node; node 0 is everything, parents come before their children
//   self, total          one array by value column
//   own, weight          the self and inclusive cost that determine a node's width: the shown value, of two profiles the
//                        larger one
//   child, children      node i's children: children[child[i]] .. children[child[i + 1] - 1], in the order shown after laid(i)
//   x(i), width(i)       as shares of node 0; only what is looked at is laid out
class Tree {
  constructor(data, thread) {
    const {head, column} = data;
    const up = column("context up"), fns = column("context function"), threads = column("context thread");
    const n = up.length, node = this.node = new Int32Array(n);  // by context: its node, -1: of another thread
    const one = thread >= 0 || head.threads.length < 2;
    this.begin(n + 1);
    for (let i = 0; i < n; i++) {
      if (!up[i]) {
        node[i] = thread < 0 || threads[i] === thread ? 0 : -1;
        if (!node[i] && head.threads[threads[i]] === "[pruned]") node[i] = this.enter(0, NONE, one);
        continue;
      }
      const above = node[i - up[i]];
      node[i] = above < 0 ? -1 : this.enter(above, fns[i], one);
    }
    this.end();
  }

  // New nodes, up to `most`, and when all are there.
  begin(most) {
    this.n = 1;
    this.parent = new Int32Array(most);
    this.fn = new Uint32Array(most);
    this.fn[0] = NONE;
    this.index = new Int32Array(1024);  // of nodes that several contexts may have
    this.indexed = 0;
  }
  end() {
    const {n} = this;
    this.index = null;
    const shown = items => n > items.length / 2 ? items.subarray(0, n) : items.slice(0, n);
    [this.parent, this.fn] = [shown(this.parent), shown(this.fn)];
    const {parent} = this, depth = this.depth = new Uint16Array(n);
    let isPreorder = true;  // each node follows its caller, or what that has called before
    for (let i = 1, top = 0; i < n; i++) {
      const above = parent[i];
      depth[i] = Math.min(65535, depth[above] + 1);
      if (!isPreorder) continue;
      while (top !== above && top > above) top = parent[top];
      isPreorder = top === above;
      top = i;
    }
    this.isPreorder = isPreorder;
  }
  // Another tree of the same contexts.  change(tree, own): enters the nodes and sets to which of them each of these belongs;
  // false: nothing changes; or if functions keep their costs, {hidden: the nodes that are, whose costs others get, functions: by
  // function, whether it is hidden, node: that of what has no caller, -1: none}
  changed(change) {
    const found = Object.create(Tree.prototype), own = new Int32Array(this.n), {node} = this;
    found.begin(this.n + 1);
    const moved = change(found, own);
    if (moved === false) return this;
    if (moved) [found.before, found.moved] = [new WeakRef(this), {...moved, becomes: own}];
    found.end();
    found.node = new Int32Array(node.length);
    for (let i = 0; i < node.length; i++) found.node[i] = node[i] < 0 ? -1 : own[node[i]];
    return found;
  }

  // values: the self costs of contexts, by value column; id: what they are of
  take(values, id) {
    const {node, n} = this;
    this.self = values.map(costs => {
      const self = new Float64Array(n);
      for (let i = 0; i < node.length; i++) if (node[i] >= 0) self[node[i]] += costs[i];
      return self;
    });
    this.total = this.self.map(self => this.summed(self));
    this.known = [];  // by value column: figures of functions
    this.costsOf = id;
  }
  // As `figures`, which are kept.  If only some functions were hidden, or only recursion collapsed, they are those of the
  // tree before but for what the hidden nodes cost.
  figuresOf(k, n) {
    if (this.known[k]) return this.known[k];
    const before = this.before?.deref();
    if (before?.costsOf !== this.costsOf || !(before.known[k] || before.isPreorder || before.child)) return this.known[k] = this.figures(k, n);
    const found = before.figuresOf(k, n), {hidden, functions, node, becomes} = this.moved;
    if (!hidden) return this.known[k] = found;
    const own = found["row self"].slice(), all = found["row inclusive"].slice(), self = before.self[k], {fn} = this;
    for (let f = 0; f < n; f++) if (functions[f]) own[f] = all[f] = 0;
    for (const i of hidden) if (fn[becomes[i]] < n) own[fn[becomes[i]]] += self[i];
    if (node >= 0) all[fn[node]] = this.total[k][node];
    return this.known[k] = {"row self": own, "row inclusive": all};
  }

  // Contexts of one thread are distinct; those of several threads merge if their functions are the same.
  enter(above, f, distinct) {
    const {parent, fn} = this;
    if (!distinct || f === NONE) {
      const {index} = this, at = this.slot(index, above, f);
      if (index[at]) return index[at];
      index[at] = this.n;
      parent[this.n] = above;
      fn[this.n++] = f;
      if (++this.indexed > index.length / 2) this.grow();
      return this.n - 1;
    }
    parent[this.n] = above;
    fn[this.n] = f;
    return this.n++;
  }
  // Where a node is in an index, or has a place.
  slot(index, above, f) {
    const {parent, fn} = this, mask = index.length - 1;
    let at = Math.imul(Math.imul(above, 0x9e3779b1) ^ f, 0x85ebca6b);
    at = (at ^ at >>> 15) & mask;
    for (let i; (i = index[at]) && (parent[i] !== above || fn[i] !== f);) at = at + 1 & mask;
    return at;
  }
  grow() {
    const {index, parent, fn} = this, larger = new Int32Array(8 * index.length);
    for (const i of index) if (i) larger[this.slot(larger, parent[i], fn[i])] = i;
    this.index = larger;
  }

  // The functions from the root to a node.
  path(id) {
    const found = [];
    for (; id > 0; id = this.parent[id]) found.push(this.fn[id]);
    return found.reverse();
  }

  summed(self) {
    const {parent} = this, total = Float64Array.from(self);
    for (let i = this.n - 1; i > 0; i--) total[parent[i]] += total[i];
    return total;
  }

  // columns: those of the shown value, one or old and new.
  arrange(columns, byName, nameOf) {
    this.views = new Map();  // what is drawn of it
    const {n, parent, fn, depth} = this, [first] = columns;
    const isPlain = columns.length === 1 && this.self[first].every(cost => cost >= 0);
    const own = this.own = isPlain ? this.self[first] : new Float64Array(n);
    if (!isPlain)
      for (const k of columns) {
        const self = this.self[k];
        for (let i = 0; i < n; i++) own[i] = Math.max(own[i], Math.abs(self[i]));
      }
    const weight = this.weight = isPlain ? this.total[first] : this.summed(own), child = this.child = new Uint32Array(n + 1);
    this.deepest = 0;  // of what costs something
    for (let i = 1; i < n; i++) {
      child[parent[i]]++;
      if (weight[i] && depth[i] > this.deepest) this.deepest = depth[i];
    }
    for (let i = 1; i <= n; i++) child[i] += child[i - 1];  // where the children of each end
    const children = this.children = new Uint32Array(Math.max(0, n - 1));
    for (let i = n - 1; i > 0; i--) children[--child[parent[i]]] = i;
    this.isByWeight = !byName;
    this.order = byName
      ? (a, b) => nameOf(fn[a]) < nameOf(fn[b]) ? -1 : nameOf(fn[a]) > nameOf(fn[b]) ? 1 : a - b
      : (a, b) => weight[b] - weight[a] || a - b;
    this.left = new Float64Array(n);
    this.isLaid = new Uint8Array(n);
  }
  width(i) { return i ? this.weight[i] / (this.weight[0] || 1) : 1; }
  x(i) {
    if (i) this.laid(this.parent[i]);
    return this.left[i];
  }
  // Arranges the children of a node, and before them those of its callers.
  laid(i) {
    const {parent, isLaid, left, child, children, weight} = this, whole = weight[0] || 1, todo = [];
    for (let at = i; !isLaid[at]; at = parent[at]) {
      todo.push(at);
      if (!at) break;
    }
    while (todo.length) {
      const at = todo.pop();
      isLaid[at] = 1;
      const from = child[at], n = child[at + 1] - from;
      if (n > 16 && this.isByWeight) children.set(ranked(children.slice(from, from + n), j => weight[j], true), from);
      else sort(children, from, from + n, this.order);
      for (let c = child[at], x = left[at]; c < child[at + 1]; c++) {
        left[children[c]] = x;
        x += weight[children[c]] / whole;
      }
    }
  }

  // Self and inclusive cost of the first `n` functions, one within itself counted once.  After `arrange`.  of: the group of
  // a function, whose costs are wanted instead.  costs: of the nodes, instead of those of value column k.
  figures(k, n, of = fn => fn, {self, total} = {self: this.self[k], total: this.total[k]}) {
    const {fn, parent, child, children} = this, own = new Float64Array(n), all = new Float64Array(n), open = new Uint32Array(n);  // by function
    if (this.isPreorder) {
      for (let i = 0, top = 0; i < this.n; top = i++) {
        for (; i && top !== parent[i]; top = parent[top]) if (of(fn[top]) < n) open[of(fn[top])]--;
        const f = of(fn[i]);
        if (f >= n) continue;
        own[f] += self[i];
        if (!open[f]++) all[f] += total[i];
      }
      return {"row self": own, "row inclusive": all};
    }
    const todo = new Int32Array(2 * this.n + 1);
    for (let top = 1; top;) {
      const i = todo[--top], isLeft = i < 0, f = of(fn[isLeft ? ~i : i]);
      if (isLeft) {
        open[f]--;
        continue;
      }
      if (f < n) {
        own[f] += self[i];
        if (!open[f]++) all[f] += total[i];
        todo[top++] = ~i;
      }
      for (let c = child[i]; c < child[i + 1]; c++) todo[top++] = children[c];
    }
    return {"row self": own, "row inclusive": all};
  }

  // Calls from function to function: [{from, to, costs by value column, calls by side}].  Only the outermost call of a
  // recursion has a cost, so the calls into a function add up to its inclusive cost.  A function's calls to itself have
  // what they cost, of several in one stack the outermost.  counted: by side the value column of calls, -1: none.
  arcs(counted) {
    const found = new Map(), open = new Map(), itself = new Map(), todo = [];
    const add = (map, f, n) => { map.set(f, (map.get(f) || 0) + n); };
    for (let c = this.child[0]; c < this.child[1]; c++) todo.push(this.children[c]);
    while (todo.length) {
      const next = todo.pop(), isLeft = next < 0, i = isLeft ? ~next : next, f = this.fn[i], caller = this.fn[this.parent[i]];
      if (isLeft) {
        add(open, f, -1);
        if (f === caller) add(itself, f, -1);
        continue;
      }
      if (f !== NONE && caller !== NONE) {
        const key = caller * 4294967296 + f;
        let arc = found.get(key);
        if (!arc) found.set(key, arc = {from: caller, to: f, costs: this.total.map(() => 0), calls: [0, 0]});
        if (f === caller ? !itself.get(f) : !open.get(f)) for (let k = 0; k < this.total.length; k++) arc.costs[k] += this.total[k][i];
        counted.forEach((k, side) => { if (k >= 0) arc.calls[side] += this.self[k][i]; });
      }
      add(open, f, 1);
      if (f === caller) add(itself, f, 1);
      todo.push(~i);
      for (let c = this.child[i]; c < this.child[i + 1]; c++) todo.push(this.children[c]);
    }
    return [...found.values()];
  }

  // Those of `arcs` from or to one function.
  arcsOf(f, counted) {
    const {n, fn, parent, total, self} = this, found = new Map(), inside = new Uint8Array(n);  // inside: below a call of f
    const isBelow = (i, is) => {
      for (let at = parent[i]; at > 0; at = parent[at]) if (is(at)) return true;
      return false;
    };
    for (let i = 1; i < n; i++) {
      const above = parent[i], caller = fn[above], g = fn[i];
      inside[i] = inside[above] | (caller === f && above > 0);
      if ((g !== f && caller !== f) || g === NONE || caller === NONE) continue;
      const key = caller * 4294967296 + g;
      let arc = found.get(key);
      if (!arc) found.set(key, arc = {from: caller, to: g, costs: total.map(() => 0), calls: [0, 0]});
      const isOuter = g === caller ? !isBelow(i, at => fn[at] === f && fn[parent[at]] === f) : g === f ? !inside[i] : !isBelow(i, at => fn[at] === g);
      if (isOuter) for (let k = 0; k < total.length; k++) arc.costs[k] += total[k][i];
      counted.forEach((k, side) => { if (k >= 0) arc.calls[side] += self[k][i]; });
    }
    return [...found.values()];
  }

  // The arcs of functions that call themselves.
  loops(counted) {
    const found = new Map(), {fn, parent} = this;
    const isInside = (i, f) => {  // is the call within another one of f to itself?
      for (let at = parent[i]; at > 0; at = parent[at]) if (fn[at] === f && fn[parent[at]] === f) return true;
      return false;
    };
    for (let i = 1; i < this.n; i++) {
      const f = fn[i];
      if (f === NONE || f !== fn[parent[i]]) continue;
      if (!found.has(f)) found.set(f, {from: f, to: f, costs: this.total.map(() => 0), calls: [0, 0]});
      const arc = found.get(f);
      if (!isInside(i, f)) for (let k = 0; k < this.total.length; k++) arc.costs[k] += this.total[k][i];
      counted.forEach((k, side) => { if (k >= 0) arc.calls[side] += this.self[k][i]; });
    }
    return [...found.values()];
  }

  // The inclusive cost of the matching functions; a match below another match counts once.
  matched(matches, k) {
    const inside = new Uint8Array(this.n);
    let sum = 0;
    for (let i = 1; i < this.n; i++) {
      inside[i] = inside[this.parent[i]];
      if (!inside[i] && this.fn[i] !== NONE && matches[this.fn[i]]) {
        inside[i] = 1;
        sum += this.total[k][i];
      }
    }
    return sum;
  }
}
