// Sorts part of an array, which usually has few items.
const sort = (items, from, to, before) => {
  if (to - from > 16) {
    if (Array.isArray(items)) items.sort(before);  // all of it
    else items.subarray(from, to).sort(before);
    return;
  }
  for (let i = from + 1; i < to; i++) {
    const item = items[i];
    let at = i;
    for (; at > from && before(items[at - 1], item) > 0; at--) items[at] = items[at - 1];
    items[at] = item;
  }
};
// Items 0 to n - 1, each made when it is read first.
const lazily = (n, make) => {
  const items = {length: n};
  for (let k = 0; k < n; k++) Object.defineProperty(items, k, {configurable: true, get: () => {
    const value = make(k);
    Object.defineProperty(items, k, {value});
    return value;
  }});
  return items;
};
const GONE = 1, RENAMED = 2;
// Memory that `rebuilt` uses each time, with what it had the last time.
const scratch = new Map();
const room = (name, Type, n) => {
  if (!(scratch.get(name)?.length >= n)) scratch.set(name, new Type(n));
  return scratch.get(name);
};
// Items `from` to `stop` - 1 go to where they are `by` later.  A browser copies many of them faster than a loop.
const copied = (to, items, from, stop, by) => {
  if (stop - from > 64) to.set(items.subarray(from, stop), from + by);
  else for (let j = from; j < stop; j++) to[j + by] = items[j];
};
// Nodes, which are then larger by `by`.
const shifted = (to, nodes, from, stop, by) => {
  if (!by) return copied(to, nodes, from, stop, 0);
  for (let j = from; j < stop; j++) to[j + by] = nodes[j] + by;
};

// Another tree of the nodes of `from`; its nodes are in depth-first order, too.
//
//   changes     by node: GONE: its costs and callees become its caller's; RENAMED: it gets another function
//   changed     the nodes of which there is one, in order
//   functions   by function: what it becomes; null: itself
//   limit       functions are below it
//   begins      the nodes that become roots, none within another; null: those that are.  Others are left out
//   lost        the function of a root for the costs of nodes that are gone and have no caller; NONE: node 0 gets them
//
// Callees of one caller that have the same function then become one.  Neighbours in which nothing changes are copied together.
// Returns {n, parent, fn, end, depth, node: that of `lost`, -1: none; and of nodes of `from` that are not left out
// copies: [first, last + 1, how much later they are now] of those that were copied; entered: [node, its node]; gone: the same}
const PARENT_OF_CHANGED = 2;
const rebuilt = ({n, parent, fn, end, depth}, {changes = null, changed = [], functions = null, limit, begins = null, lost = NONE}) => {
  const above = new Int32Array(n + 1), shown = new Uint32Array(n + 1), after = new Int32Array(n + 1), deep = new Uint16Array(n + 1);
  const copies = [], entered = [], gone = [];
  const next = room("next", Int32Array, n);  // the next node that becomes one with it, 0: none; always all 0 before and after
  const last = room("last", Int32Array, limit + 1), of = room("of", Int32Array, limit + 1).fill(-1);  // by function: the last such node, and below which one
  const todo = room("todo", Int32Array, 3 * n + 3);  // first of those that become one, or of neighbours that are copied; their end; their caller.  -1: the root of `lost`
  const isMixed = room("isMixed", Uint8Array, n).fill(0);  // something changes in it
  const apart = room("apart", Int32Array, n + 1);  // the nodes that were not copied
  for (let k = changed.length - 1; k >= 0; k--) {
    for (let i = changed[k]; i && !isMixed[i]; i = parent[i]) isMixed[i] = 1;
    isMixed[parent[changed[k]]] = PARENT_OF_CHANGED;
  }
  isMixed[0] ||= 1;
  let size = 1, top = 0, node = -1, isLost = false, nApart = 0;
  shown[0] = NONE;
  after[0] = 1;
  const put = (c, stop, id) => {
    todo[top++] = c;
    todo[top++] = stop;
    todo[top++] = id;
  };
  // Each turn enters a node for i and what becomes one with it, and lists their callees; the first one is node 0.
  for (let i = 0, stop = 0, id = -1; ;) {
    let mine = 0;
    const from = top;
    if (id >= 0) {
      if (!id && isLost && (i < 0 || fn[i] === lost)) node = size;
      if (i >= 0 && !next[i] && !isMixed[i]) {  // with all below it
        const by = size - i, deeper = deep[id] + 1 - depth[i];
        shifted(above, parent, i, stop, by);
        copied(shown, fn, i, stop, by);
        shifted(after, end, i, stop, by);
        copied(deep, depth, i, stop, by);
        if (deeper) for (let j = size; j < stop + by; j++) deep[j] = Math.min(65535, deep[j] + deeper);
        if (parent[i] + by !== id) for (let c = i; c < stop; c = end[c]) above[c + by] = id;
        copies.push(i, stop, by);
        after[id] = size += stop - i;
        i = -1;
      } else {
        mine = apart[nApart++] = size++;
        above[mine] = id;
        shown[mine] = i < 0 ? lost : fn[i] === NONE || !functions ? fn[i] : functions[fn[i]];
        after[mine] = size;
        deep[mine] = Math.min(65535, deep[id] + 1);
      }
    }
    if (id < 0 && begins)
      for (const c of begins) {
        const f = fn[c] === NONE ? limit : fn[c];
        if (of[f] === 0) next[last[f]] = c;
        else {
          of[f] = 0;
          put(c, end[c], 0);
        }
        last[f] = c;
      }
    else if (i >= 0 && isMixed[i] === 1 && !next[i]) {  // its callees stay as they are, but not theirs
      entered.push(i, mine);
      for (let c = i + 1, stop = end[i]; c < stop;) {
        const first = c;
        if (isMixed[c]) c = end[c];
        else while (c < stop && !isMixed[c]) c = end[c];
        put(first, c, mine);
      }
    } else
      for (let j = i, following; j >= 0; j = following || -1) {
        following = next[j];
        next[j] = 0;
        entered.push(j, mine);
        for (let c = j + 1, stop = end[j]; c < stop;) {
          if (changes && changes[c] === GONE) {  // its callees are mine
            gone.push(c++, mine);
            isLost ||= !mine;
            continue;
          }
          const f = fn[c] === NONE ? limit : functions ? functions[fn[c]] : fn[c];
          if (of[f] === mine) next[last[f]] = c;
          else {
            of[f] = mine;
            put(c, end[c], mine);
          }
          last[f] = c;
          c = end[c];
        }
      }
    if (id < 0 && isLost && lost !== NONE && of[lost] !== 0) put(-1, 0, 0);
    for (let a = from, b = top - 3; a < b; a += 3, b -= 3)  // the first one is the next
      for (let k = 0; k < 3; k++) {
        const c = todo[a + k];
        todo[a + k] = todo[b + k];
        todo[b + k] = c;
      }
    if (!top) break;
    id = todo[--top];
    stop = todo[--top];
    i = todo[--top];
  }
  for (let k = nApart - 1; k >= 0; k--) {
    const i = apart[k], to = above[i];
    if (after[i] > after[to]) after[to] = after[i];
  }
  if (node >= 0) for (let k = 1; k < gone.length; k += 2) gone[k] ||= node;
  return {n: size, parent: above, fn: shown, end: after, depth: deep, node, copies, entered, gone};
};
// By node of the tree before: its node, -1: left out.
const nodesAfter = (n, {copies, entered, gone}) => {
  const found = new Int32Array(n).fill(-1);
  for (let k = 0; k < copies.length; k += 3) for (let j = copies[k]; j < copies[k + 1]; j++) found[j] = j + copies[k + 2];
  for (const pairs of [entered, gone]) for (let k = 0; k < pairs.length; k += 2) found[pairs[k]] = pairs[k + 1];
  return found;
};

// The context tree of one thread or of all, its totals, and where each context lies from 0 to 1.
//
//   parent, fn, depth    by node; node 0 is everything; nodes are in depth-first order
//   end                  the callees of node i, theirs and so on are i + 1 to end[i] - 1
//   limit                functions are below it
//   self, total          one array by value column
//   own, weight          the self and inclusive cost that determine a node's width: the shown value, of two profiles the
//                        larger one
//   children(i)          in the order shown
//   x(i), width(i)       as shares of node 0; only what is looked at is laid out
class Tree {
  constructor(data, thread) {
    const {head, column} = data, up = column("context up"), fns = column("context function"), threads = column("context thread"), n = up.length + 1;
    const parent = new Int32Array(n), fn = new Uint32Array(n), end = new Int32Array(n), begins = [], isOf = new Uint8Array(head.threads.length);
    for (let t = 0; t < isOf.length; t++) isOf[t] = thread < 0 || t === thread ? head.threads[t] === "[pruned]" ? 2 : 1 : 0;
    fn[0] = NONE;
    for (let i = 1; i < n; i++) {
      parent[i] = up[i - 1] ? i - up[i - 1] : 0;
      fn[i] = up[i - 1] ? fns[i - 1] : NONE;
      end[i] = i + 1;
    }
    end[0] = n;
    for (let i = n - 1; i > 0; i--) if (end[i] > end[parent[i]]) end[parent[i]] = end[i];
    const roots = [], depth = new Uint16Array(n);
    for (let i = 1; i < n; i++) depth[i] = Math.min(65535, depth[parent[i]] + 1);
    for (let i = 1; i < n; i = end[i]) {  // threads
      const kind = isOf[threads[i - 1]];
      if (kind === 2) begins.push(i);
      else if (kind) {
        roots.push(i);
        for (let c = i + 1; c < end[i]; c = end[c]) begins.push(c);
      }
    }
    const made = rebuilt({n, parent, fn, end, depth}, {limit: this.limit = data.column("function name").length, begins}), own = nodesAfter(n, made), node = own.subarray(1);
    for (const i of roots) own[i] = 0;
    this.nodes = () => node;
    this.set(made);
  }
  // By context: its node, -1: of another thread, or left out
  get node() { return this.nodes(); }
  set({n, parent, fn, end, depth}) {
    const shown = items => n > items.length / 2 ? items.subarray(0, n) : items.slice(0, n);
    this.n = n;
    [this.parent, this.fn, this.end, this.depth] = [parent, fn, end, depth].map(shown);
  }
  // Another tree of the same contexts, see `rebuilt`.  moved: if functions keep their costs, {functions: by function, whether
  // it is hidden and its costs are others', null: none is}
  changed(change, moved = null) {
    const found = Object.create(Tree.prototype), made = rebuilt(this, change), {copies, entered, gone, node} = made, {nodes, n} = this;
    Object.assign(found, {limit: this.limit, before: new WeakRef(this), changes: {copies, entered, gone, node}, moved});
    found.set(made);
    let known = null;
    found.nodes = () => {
      const own = known ? null : nodesAfter(n, made);
      return known ??= nodes().map(i => i < 0 ? -1 : own[i]);
    };
    return found;
  }

  // valuesOf(k): the self costs of contexts in value column k < n; id: what they are of
  take(n, valuesOf, id) {
    const known = this.before?.deref(), before = known?.costsOf === id ? known : null;
    this.self = lazily(n, k => before ? this.selfAfter(before.self[k]) : this.ofContexts(valuesOf(k)));
    this.total = lazily(n, k => before ? this.totalAfter(before.total[k], this.self[k]) : this.summed(this.self[k]));
    this.isPositive = lazily(n, k => before?.isPositive[k] || isPositive(this.self[k]));
    this.known = [];  // by value column: figures of functions
    this.places = new Map();  // by function: its nodes
    this.costsOf = id;
  }
  // Costs of the tree before, of nodes that were copied and entered.
  carried(costs) {
    const {n, changes: {copies, entered}} = this, found = new Float64Array(n);
    for (let k = 0; k < copies.length; k += 3) copied(found, costs, copies[k], copies[k + 1], copies[k + 2]);
    for (let k = 0; k < entered.length; k += 2) found[entered[k + 1]] += costs[entered[k]];
    return found;
  }
  selfAfter(costs) {
    const {changes: {gone}} = this, self = this.carried(costs);
    for (let k = 0; k < gone.length; k += 2) self[gone[k + 1]] += costs[gone[k]];
    return self;
  }
  // A node that is gone is part of its caller's total; sums are of node 0, which nothing may be the caller of, and of that of `lost`.
  totalAfter(costs, self) {
    const {end, changes: {node}} = this, total = this.carried(costs);
    for (const i of [node, 0]) {
      if (i < 0) continue;
      total[i] = self[i];
      for (let c = i + 1; c < end[i]; c = end[c]) total[i] += total[c];
    }
    return total;
  }
  ofContexts(costs) {
    const {node} = this, self = new Float64Array(this.n);
    for (let i = 0; i < node.length; i++) if (node[i] >= 0) self[node[i]] += costs[i];
    return self;
  }
  // As `figures`, which are kept.  If only some functions were hidden, or only recursion collapsed, they are those of the
  // tree before but for what the hidden nodes cost.
  figuresOf(k, n) {
    if (this.known[k]) return this.known[k];
    const before = this.moved && this.before.deref();
    if (before?.costsOf !== this.costsOf) return this.known[k] = this.figures(k, n);
    const found = before.figuresOf(k, n), {moved: {functions}, changes: {gone, node}} = this;
    if (!functions) return this.known[k] = found;
    const own = found["row self"].slice(), all = found["row inclusive"].slice(), self = before.self[k], {fn} = this;
    for (let f = 0; f < n; f++) if (functions[f]) own[f] = all[f] = 0;
    for (let k = 0; k < gone.length; k += 2) if (fn[gone[k + 1]] < n) own[fn[gone[k + 1]]] += self[gone[k]];
    if (node >= 0) all[fn[node]] = this.total[k][node];
    return this.known[k] = {"row self": own, "row inclusive": all};
  }

  // The functions from the root to a node.
  path(id) {
    const found = [];
    for (; id > 0; id = this.parent[id]) found.push(this.fn[id]);
    return found.reverse();
  }

  summed(self) {
    const {parent} = this, total = self.slice();
    for (let i = this.n - 1; i > 0; i--) total[parent[i]] += total[i];
    return total;
  }

  // columns: those of the shown value, one or old and new.
  arrange(columns, byName, nameOf) {
    this.views = new Map();  // what is drawn of it
    this.widthsOfRow = this.countsOfRow = this.firstsOfRow = null;  // for runs, see boxes.js
    const {n, fn, depth} = this, [first] = columns;
    const isPlain = columns.length === 1 && this.isPositive[first];
    const own = this.own = isPlain ? this.self[first] : new Float64Array(n);
    if (!isPlain)
      for (const k of columns) {
        const self = this.self[k];
        for (let i = 0; i < n; i++) own[i] = Math.max(own[i], Math.abs(self[i]));
      }
    const weight = this.weight = isPlain ? this.total[first] : this.summed(own);
    this.deepest = deepestOf(depth, weight, this.before?.deref()?.deepest);
    this.isByWeight = !byName;
    this.order = byName
      ? (a, b) => nameOf(fn[a]) < nameOf(fn[b]) ? -1 : nameOf(fn[a]) > nameOf(fn[b]) ? 1 : a - b
      : (a, b) => weight[b] - weight[a] || a - b;
    this.left = new Float64Array(n);
    this.laid = new Map();  // by node: its children, which have their place
  }
  width(i) { return i ? this.weight[i] / (this.weight[0] || 1) : 1; }
  x(i) {
    if (i) this.children(this.parent[i]);
    return this.left[i];
  }
  // Those of its callers are arranged before.
  children(i) {
    const {laid} = this, todo = [];
    for (let at = i; !laid.has(at); at = this.parent[at]) {
      todo.push(at);
      if (!at) break;
    }
    while (todo.length) this.lay(todo.pop());
    return laid.get(i);
  }
  lay(i) {
    const {end, left, weight} = this, whole = weight[0] || 1;
    let n = 0, x = left[i];
    for (let c = i + 1; c < end[i]; c = end[c]) n++;
    let found = new Uint32Array(n);
    for (let c = i + 1, at = 0; c < end[i]; c = end[c]) found[at++] = c;
    if (n > 16 && this.isByWeight) found = ranked(found, j => weight[j], true);
    else sort(found, 0, n, this.order);
    for (let at = 0; at < n; at++) {
      left[found[at]] = x;
      x += weight[found[at]] / whole;
    }
    this.laid.set(i, found);
  }

  // The children that are at least this wide, in the order shown, which get their places; the others follow them: their
  // number, the first one and where they begin.  Only by weight, after those of its callers.
  wide(i, least) {
    const {end, left, weight} = this, whole = weight[0] || 1, found = [];
    let narrow = 0, first = -1, x = left[i];
    for (let c = i + 1; c < end[i]; c = end[c]) {
      const cost = weight[c];
      if (cost / whole >= least) found.push(c);
      else if (cost && !narrow++) first = c;
    }
    sort(found, 0, found.length, this.order);
    for (const c of found) {
      left[c] = x;
      x += weight[c] / whole;
    }
    if (narrow === 1) left[first] = x;
    return {found, narrow, first, x};
  }
  // The nodes of a function.
  of(fn) {
    if (!this.places.has(fn)) this.places.set(fn, allOf(this.fn, fn));
    return this.places.get(fn);
  }

  // Self and inclusive cost of the first `n` functions, one within itself counted once.  groupOf: the group of a function,
  // whose costs are wanted instead.  costs: of the nodes, instead of those of value column k.
  figures(k, n, groupOf = null, {self, total} = {self: this.self[k], total: this.total[k]}) {
    const {fn, parent} = this, own = new Float64Array(n), all = new Float64Array(n), open = new Uint32Array(n);  // by function
    const of = groupOf ? Uint32Array.from(fn, f => f === NONE ? NONE : groupOf[f]) : fn;
    for (let i = 0, top = 0; i < this.n; top = i++) {
      for (; i && top !== parent[i]; top = parent[top]) if (of[top] < n) open[of[top]]--;
      const f = of[i];
      if (f >= n) continue;
      own[f] += self[i];
      if (!open[f]++) all[f] += total[i];
    }
    return {"row self": own, "row inclusive": all};
  }

  // Calls from function to function: [{from, to, costs by value column, calls by side}].  Only the outermost call of a
  // recursion has a cost, so the calls into a function add up to its inclusive cost.  A function's calls to itself have
  // what they cost, of several in one stack the outermost.  columns: the value columns whose costs are wanted; counted: by
  // side the value column of calls, -1: none.
  arcs(columns, counted) {
    const {fn, parent} = this, found = new ArcSums(this, columns, counted), open = new Map(), itself = new Map();
    const add = (map, f, n) => { map.set(f, (map.get(f) || 0) + n); };
    for (let i = 1, top = 0; i < this.n; top = i++) {
      for (; top !== parent[i]; top = parent[top]) {
        add(open, fn[top], -1);
        if (fn[top] === fn[parent[top]]) add(itself, fn[top], -1);
      }
      const f = fn[i], caller = fn[parent[i]];
      if (f !== NONE && caller !== NONE) found.add(i, f === caller ? !itself.get(f) : !open.get(f));
      add(open, f, 1);
      if (f === caller) add(itself, f, 1);
    }
    return found.list();
  }

  // Those of `arcs` from or to one function.
  arcsOf(f, columns, counted) {
    const {fn, parent, end} = this, found = new ArcSums(this, columns, counted);
    const isBelow = (i, g) => {
      for (let at = parent[i]; at > 0; at = parent[at]) if (fn[at] === g) return true;
      return false;
    };
    let outer = 0, loop = 0;  // where the outermost call of f ends, and of f to itself
    if (f !== NONE)
      for (const i of this.of(f)) {
        const caller = fn[parent[i]];
        if (caller === f) {
          found.add(i, i >= loop);
          loop = Math.max(loop, end[i]);
        } else if (caller !== NONE) found.add(i, i >= outer);
        outer = Math.max(outer, end[i]);
        for (let c = i + 1; c < end[i]; c = end[c]) if (fn[c] !== f && fn[c] !== NONE) found.add(c, !isBelow(c, fn[c]));
      }
    return found.list();
  }

  // The arcs of functions that call themselves.
  loops(columns, counted) {
    const {fn, parent, end} = this, found = new ArcSums(this, columns, counted), loop = new Map();  // by function: where its outermost call to itself ends
    for (let i = 1; i < this.n; i++) {
      const f = fn[i];
      if (f === NONE || f !== fn[parent[i]]) continue;
      const isOuter = i >= (loop.get(f) || 0);
      if (isOuter) loop.set(f, end[i]);
      found.add(i, isOuter);
    }
    return found.list();
  }

  // The inclusive cost of the matching functions; a match below another match counts once.
  matched(matches, k) {
    const {n, fn, end} = this, total = this.total[k];
    let sum = 0;
    for (let i = 1; i < n;)
      if (fn[i] !== NONE && matches[fn[i]]) {
        sum += total[i];
        i = end[i];
      } else i++;
    return sum;
  }
}
const isPositive = costs => {
  for (let i = 0; i < costs.length; i++) if (costs[i] < 0) return false;
  return true;
};
// How deep what costs something is, which a transform makes no larger than `most` before.
const deepestOf = (depth, weight, most = 65535) => {
  let deepest = 0;
  for (let i = 1; i < depth.length && deepest < most; i++) if (depth[i] > deepest && weight[i]) deepest = depth[i];
  return deepest;
};
// Where an item is, but for the first place: a browser finds few of them faster than a loop.
const allOf = (items, item) => {
  const found = [];
  let i = items.indexOf(item, 1);
  for (; i > 0 && found.length < 1000; i = items.indexOf(item, i + 1)) found.push(i);
  if (i > 0) for (; i < items.length; i++) if (items[i] === item) found.push(i);
  return found;
};
// Sums of calls by caller and callee.
class ArcSums {
  constructor(tree, columns, counted) {
    const {self, total} = tree;
    [this.tree, this.found, this.n] = [tree, new Map(), total.length];
    this.costs = columns.map(k => [k, total[k]]);
    this.counts = counted.map(k => k < 0 ? null : self[k]);
  }
  // The call that node i is; isOuter: whether it has a cost
  add(i, isOuter) {
    const {tree: {fn, parent}, found, costs, counts} = this, from = fn[parent[i]], to = fn[i], key = from * 4294967296 + to;
    let arc = found.get(key);
    if (!arc) found.set(key, arc = {from, to, costs: new Array(this.n).fill(0), calls: [0, 0]});
    if (isOuter) for (const [k, total] of costs) arc.costs[k] += total[i];
    for (let side = 0; side < counts.length; side++) if (counts[side]) arc.calls[side] += counts[side][i];
  }
  list() { return [...this.found.values()]; }
}
