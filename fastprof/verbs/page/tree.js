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
// Arrays for the next transform, made in idle time: that a page gets new memory takes as long as what is written into it.
const spares = [];
const spare = n => [Uint32Array, Uint32Array, Uint32Array, Uint16Array, Float64Array, Float64Array, Float64Array].map(Type => () => spares.push(new Type(n + 1).fill(0)));
// An array of zeros.
const zeros = (Type, n) => {
  const at = spares.findIndex(items => items instanceof Type && items.length >= n && n > items.length / 2);
  return at < 0 ? new Type(n) : spares.splice(at, 1)[0].subarray(0, n);
};
// Items `from` to `stop` - 1 go to where they are `by` later.  A browser copies many of them faster than a loop.
const copied = (to, items, from, stop, by) => {
  if (stop - from > 64) to.set(items.subarray(from, stop), from + by);
  else for (let j = from; j < stop; j++) to[j + by] = items[j];
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
// Returns {n, up, fn, span, depth, node: that of `lost`, -1: none; and of nodes of `from` that are not left out
// copies: [first, last + 1, how much later they are now] of those that were copied; entered: [node, its node]; gone: the same}
const PARENT_OF_CHANGED = 2;
const rebuilt = ({n, up, fn, span, depth}, {changes = null, changed = [], functions = null, limit, begins = null, lost = NONE}) => {
  const [ups, shown, spans] = [1, 2, 3].map(() => zeros(Uint32Array, n + 1)), deep = zeros(Uint16Array, n + 1);
  const copies = [], entered = [], gone = [];
  const next = room("next", Int32Array, n);  // the next node that becomes one with it, 0: none; always all 0 before and after
  const last = room("last", Int32Array, limit + 1), of = room("of", Int32Array, limit + 1).fill(-1);  // by function: the last such node, and below which one
  const todo = room("todo", Int32Array, 3 * n + 3);  // first of those that become one, or of neighbours that are copied; their end; their caller.  -1: the root of `lost`
  const isMixed = room("isMixed", Uint8Array, n).fill(0);  // something changes in it
  const apart = room("apart", Int32Array, n + 1);  // the nodes that were not copied, whose `spans` are where they end until all are there
  for (let k = changed.length - 1; k >= 0; k--) {
    for (let i = changed[k]; i && !isMixed[i]; i -= up[i]) isMixed[i] = 1;
    isMixed[changed[k] - up[changed[k]]] = PARENT_OF_CHANGED;
  }
  isMixed[0] ||= 1;
  let size = 1, top = 0, node = -1, isLost = false, nApart = 0;
  shown[0] = NONE;
  spans[0] = 1;
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
        copied(ups, up, i, stop, by);
        copied(shown, fn, i, stop, by);
        copied(spans, span, i, stop, by);
        copied(deep, depth, i, stop, by);
        if (deeper) for (let j = size; j < stop + by; j++) deep[j] = Math.min(65535, deep[j] + deeper);
        if (i - up[i] + by !== id) for (let c = i; c < stop; c += span[c]) ups[c + by] = c + by - id;
        copies.push(i, stop, by);
        spans[id] = size += stop - i;
        i = -1;
      } else {
        mine = apart[nApart++] = size++;
        ups[mine] = mine - id;
        shown[mine] = i < 0 ? lost : fn[i] === NONE || !functions ? fn[i] : functions[fn[i]];
        spans[mine] = size;
        deep[mine] = Math.min(65535, deep[id] + 1);
      }
    }
    if (id < 0 && begins)
      for (const c of begins) {
        const f = fn[c] === NONE ? limit : fn[c];
        if (of[f] === 0) next[last[f]] = c;
        else {
          of[f] = 0;
          put(c, c + span[c], 0);
        }
        last[f] = c;
      }
    else if (i >= 0 && isMixed[i] === 1 && !next[i]) {  // its callees stay as they are, but not theirs
      entered.push(i, mine);
      for (let c = i + 1, stop = i + span[i]; c < stop;) {
        const first = c;
        if (isMixed[c]) c += span[c];
        else while (c < stop && !isMixed[c]) c += span[c];
        put(first, c, mine);
      }
    } else
      for (let j = i, following; j >= 0; j = following || -1) {
        following = next[j];
        next[j] = 0;
        entered.push(j, mine);
        for (let c = j + 1, stop = j + span[j]; c < stop;) {
          if (changes && changes[c] === GONE) {  // its callees are mine
            gone.push(c++, mine);
            isLost ||= !mine;
            continue;
          }
          const f = fn[c] === NONE ? limit : functions ? functions[fn[c]] : fn[c];
          if (of[f] === mine) next[last[f]] = c;
          else {
            of[f] = mine;
            put(c, c + span[c], mine);
          }
          last[f] = c;
          c += span[c];
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
    const i = apart[k], to = i - ups[i];
    if (spans[i] > spans[to]) spans[to] = spans[i];
    spans[i] -= i;
  }
  if (node >= 0) for (let k = 1; k < gone.length; k += 2) gone[k] ||= node;
  return {n: size, up: ups, fn: shown, span: spans, depth: deep, node, copies, entered, gone};
};
// By node of the tree before: its node, -1: left out.
const nodesAfter = (n, {copies, entered, gone}) => {
  const found = new Int32Array(n).fill(-1);
  for (let k = 0; k < copies.length; k += 3) for (let j = copies[k]; j < copies[k + 1]; j++) found[j] = j + copies[k + 2];
  for (const pairs of [entered, gone]) for (let k = 0; k < pairs.length; k += 2) found[pairs[k]] = pairs[k + 1];
  return found;
};

// Whether nodes have a function each.
const areDifferent = (nodes, fn, limit) => {
  const seen = new Uint8Array(limit + 1);
  return nodes.every(i => {
    const f = Math.min(fn[i], limit), isNew = !seen[f];
    seen[f] = 1;
    return isNew;
  });
};

// The context tree of one thread or of all, its totals, and where each context lies from 0 to 1.
//
//   fn, depth            by node; node 0 is everything; nodes are in depth-first order
//   up                   the caller of node i is i - up[i]
//   span                 the callees of node i, theirs and so on are i + 1 to i + span[i] - 1.  Both are relative, so that what a
//                        transform does not change is only copied
//   limit                functions are below it
//   self, total          one array by value column
//   own, weight          the self and inclusive cost that determine a node's width: the shown value, of two profiles the
//                        larger one
//   children(i)          in the order shown
//   x(i), width(i)       as shares of node 0; only what is looked at is laid out
class Tree {
  constructor(data, thread) {
    const {head, column} = data, above = column("context up"), functions = column("context function"), limit = this.limit = data.column("function name").length;
    const begins = [], roots = [], firsts = [], isOf = new Uint8Array(head.threads.length);
    for (let t = 0; t < isOf.length; t++) isOf[t] = thread < 0 || t === thread ? head.threads[t] === "[pruned]" ? 2 : 1 : 0;
    for (let c = above.indexOf(0); c >= 0; c = above.indexOf(0, c + 1)) firsts.push(c);  // of threads
    const base = firsts.length === 1 && isOf.length === 1 && isOf[0] === 1 ? 0 : 1;  // of one thread the contexts are the nodes
    const n = above.length + base, up = base ? new Uint32Array(n) : above, fn = base ? new Uint32Array(n) : functions, span = new Uint32Array(n).fill(1), depth = new Uint16Array(n);
    if (base) {
      up.set(above, 1);
      fn.set(functions, 1);
      fn[0] = NONE;
      for (const c of firsts) up[c + 1] = c + 1;
    }
    for (let i = n - 1; i > 0; i--) span[i - up[i]] += span[i];
    for (let i = 1; i < n; i++) depth[i] = Math.min(65535, depth[i - up[i]] + 1);
    for (const c of firsts) {
      const i = c + base, kind = isOf[base ? column("context thread")[c] : 0];
      if (kind === 2) begins.push(i);
      else if (kind) {
        roots.push(i);
        for (let c = i + 1; c < i + span[i]; c += span[c]) begins.push(c);
      }
    }
    const found = {n, up, fn, span, depth}, isWhole = !base && areDifferent(begins, fn, limit);
    const made = isWhole ? {...found, copies: [0, n, 0], entered: [], gone: []} : rebuilt(found, {limit, begins});
    for (const i of roots) if (!isWhole) made.entered.push(i, 0);
    const {copies, entered, gone} = made;
    let known = null;
    this.nodes = () => known ??= nodesAfter(n, {copies, entered, gone}).subarray(base);
    this.contexts = {copies, entered, base};
    this.set(made);
  }
  // By context: its node, -1: of another thread, or left out
  get node() { return this.nodes(); }
  set({n, up, fn, span, depth}) {
    const shown = items => n > items.length / 2 ? items.subarray(0, n) : items.slice(0, n);
    this.n = n;
    [this.up, this.fn, this.span, this.depth] = [up, fn, span, depth].map(shown);
  }
  // Another tree of the same contexts, see `rebuilt`.  moved: if functions keep their costs, {functions: those that are
  // hidden, whose costs are others'}
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
    this.sums = [];  // the same, while they are added up
    this.places = new Map();  // by function: its nodes
    this.costsOf = id;
  }
  // Costs of the tree before, of nodes that were copied and entered; base: where contexts begin, whose costs they are.
  carried(costs, {copies, entered, base = 0}) {
    const found = zeros(Float64Array, this.n);
    for (let k = 0; k < copies.length; k += 3) copied(found, costs, copies[k] - base, copies[k + 1] - base, copies[k + 2] + base);
    for (let k = 0; k < entered.length; k += 2) found[entered[k + 1]] += costs[entered[k] - base];
    return found;
  }
  selfAfter(costs) {
    const {changes: {gone}} = this, self = this.carried(costs, this.changes);
    for (let k = 0; k < gone.length; k += 2) self[gone[k + 1]] += costs[gone[k]];
    return self;
  }
  // A node that is gone is part of its caller's total; sums are of node 0, which nothing may be the caller of, and of that of `lost`.
  totalAfter(costs, self) {
    const {span, changes: {node}} = this, total = this.carried(costs, this.changes);
    for (const i of [node, 0]) {
      if (i < 0) continue;
      total[i] = self[i];
      for (let c = i + 1; c < i + span[i]; c += span[c]) total[i] += total[c];
    }
    return total;
  }
  ofContexts(costs) {
    if (this.contexts) return this.carried(costs, this.contexts);
    const {node} = this, self = new Float64Array(this.n);
    for (let i = 0; i < node.length; i++) if (node[i] >= 0) self[node[i]] += costs[i];
    return self;
  }
  // As `figures`, which are kept.  If only some functions were hidden, or only recursion collapsed, they are those of the
  // tree before but for what the hidden nodes cost.
  figuresOf(k, n) {
    if (this.known[k]) return this.known[k];
    const before = this.moved && this.before.deref();
    if (before?.costsOf !== this.costsOf) {
      this.prepareFigures(k, n, this.n);
      return this.known[k] = this.sums[k].found;
    }
    const found = before.figuresOf(k, n), {moved: {functions}, changes: {gone, node}} = this;
    if (!functions.length) return this.known[k] = found;
    const own = found["row self"].slice(), all = found["row inclusive"].slice(), self = before.self[k], {fn} = this;
    const changed = this.changedFunctions ??= new Set(functions);
    for (const f of functions) own[f] = all[f] = 0;
    for (let k = 0; k < gone.length; k += 2) {
      const f = fn[gone[k + 1]];
      if (f >= n) continue;
      own[f] += self[gone[k]];
      changed.add(f);
    }
    if (node >= 0) {
      all[fn[node]] = this.total[k][node];
      changed.add(fn[node]);
    }
    this.known[k] = {"row self": own, "row inclusive": all};
    for (const [name, items] of Object.entries(this.known[k])) figureChanges.set(items, {before: found[name], changed});
    return this.known[k];
  }

  // Adds these figures up to a node; whether those of all nodes are there.
  prepareFigures(k, n, stop) {
    return this.known[k] !== undefined || (this.sums[k] ??= new FunctionSums(this, n, this.fn, this.self[k], this.total[k])).add(stop);
  }

  // The functions from the root to a node.
  path(id) {
    const found = [];
    for (; id > 0; id -= this.up[id]) found.push(this.fn[id]);
    return found.reverse();
  }

  summed(self) {
    const {up} = this, total = self.slice();
    for (let i = this.n - 1; i > 0; i--) total[i - up[i]] += total[i];
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
    this.left = zeros(Float64Array, n);
    this.laid = new Map();  // by node: its children, which have their place
  }
  width(i) { return i ? this.weight[i] / (this.weight[0] || 1) : 1; }
  x(i) {
    if (i) this.children(i - this.up[i]);
    return this.left[i];
  }
  // Those of its callers are arranged before.
  children(i) {
    const {laid} = this, todo = [];
    for (let at = i; !laid.has(at); at -= this.up[at]) {
      todo.push(at);
      if (!at) break;
    }
    while (todo.length) this.lay(todo.pop());
    return laid.get(i);
  }
  lay(i) {
    const {span, left, weight} = this, whole = weight[0] || 1;
    let n = 0, x = left[i];
    for (let c = i + 1; c < i + span[i]; c += span[c]) n++;
    let found = new Uint32Array(n);
    for (let c = i + 1, at = 0; c < i + span[i]; c += span[c]) found[at++] = c;
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
    const {span, left, weight} = this, whole = weight[0] || 1, found = [];
    let narrow = 0, first = -1, x = left[i];
    for (let c = i + 1; c < i + span[i]; c += span[c]) {
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
    const sums = new FunctionSums(this, n, groupOf ? Uint32Array.from(this.fn, f => f === NONE ? NONE : groupOf[f]) : this.fn, self, total);
    sums.add(this.n);
    return sums.found;
  }

  // Calls from function to function: [{from, to, costs by value column, calls by side}].  Only the outermost call of a
  // recursion has a cost, so the calls into a function add up to its inclusive cost.  A function's calls to itself have
  // what they cost, of several in one stack the outermost.  columns: the value columns whose costs are wanted; counted: by
  // side the value column of calls, -1: none.
  arcs(columns, counted) {
    const {fn, up} = this, found = new ArcSums(this, columns, counted), open = new Map(), itself = new Map();
    const add = (map, f, n) => { map.set(f, (map.get(f) || 0) + n); };
    for (let i = 1, top = 0; i < this.n; top = i++) {
      for (; top !== i - up[i]; top -= up[top]) {
        add(open, fn[top], -1);
        if (fn[top] === fn[top - up[top]]) add(itself, fn[top], -1);
      }
      const f = fn[i], caller = fn[i - up[i]];
      if (f !== NONE && caller !== NONE) found.add(i, f === caller ? !itself.get(f) : !open.get(f));
      add(open, f, 1);
      if (f === caller) add(itself, f, 1);
    }
    return found.list();
  }

  // Those of `arcs` from or to one function.
  arcsOf(f, columns, counted) {
    const {fn, up, span} = this, found = new ArcSums(this, columns, counted);
    const isBelow = (i, g) => {
      for (let at = i - up[i]; at > 0; at -= up[at]) if (fn[at] === g) return true;
      return false;
    };
    let outer = 0, loop = 0;  // where the outermost call of f ends, and of f to itself
    if (f !== NONE)
      for (const i of this.of(f)) {
        const caller = fn[i - up[i]];
        if (caller === f) {
          found.add(i, i >= loop);
          loop = Math.max(loop, i + span[i]);
        } else if (caller !== NONE) found.add(i, i >= outer);
        outer = Math.max(outer, i + span[i]);
        for (let c = i + 1; c < i + span[i]; c += span[c]) if (fn[c] !== f && fn[c] !== NONE) found.add(c, !isBelow(c, fn[c]));
      }
    return found.list();
  }

  // The arcs of functions that call themselves.
  loops(columns, counted) {
    const {fn, up, span} = this, found = new ArcSums(this, columns, counted), loop = new Map();  // by function: where its outermost call to itself ends
    for (let i = 1; i < this.n; i++) {
      const f = fn[i];
      if (f === NONE || f !== fn[i - up[i]]) continue;
      const isOuter = i >= (loop.get(f) || 0);
      if (isOuter) loop.set(f, i + span[i]);
      found.add(i, isOuter);
    }
    return found.list();
  }

  // The inclusive cost of the matching functions; a match below another match counts once.
  matched(matches, k) {
    const {n, fn, span} = this, total = this.total[k];
    let sum = 0;
    for (let i = 1; i < n;)
      if (fn[i] !== NONE && matches[fn[i]]) {
        sum += total[i];
        i += span[i];
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
// Where an item is from a place on: a browser finds few of them faster than a loop.
const allOf = (items, item, from = 1) => {
  const found = [];
  let i = items.indexOf(item, from);
  for (; i >= from && found.length < 1000; i = items.indexOf(item, i + 1)) found.push(i);
  if (i >= from) for (; i < items.length; i++) if (items[i] === item) found.push(i);
  return found;
};
// By array of figures: {before: another one, changed: the functions whose figures are others there}.
const figureChanges = new WeakMap();
// Self and inclusive costs by function.
class FunctionSums {
  // of: by node, its function, below n
  constructor({up}, n, of, self, total) {
    Object.assign(this, {up, n, of, self, total, at: 0, open: new Uint32Array(n)});
    this.found = {"row self": new Float64Array(n), "row inclusive": new Float64Array(n)};
  }
  // Adds the nodes up to one; whether it was the last.
  add(stop) {
    const {up, n, of, self, total, open, found: {"row self": own, "row inclusive": all}} = this, last = Math.min(stop, of.length);
    for (let i = this.at, top = Math.max(0, i - 1); i < last; top = i++) {
      for (; i && top !== i - up[i]; top -= up[top]) if (of[top] < n) open[of[top]]--;
      const f = of[i];
      if (f >= n) continue;
      own[f] += self[i];
      if (!open[f]++) all[f] += total[i];
    }
    this.at = Math.max(this.at, last);
    return last === of.length;
  }
}
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
    const {tree: {fn, up}, found, costs, counts} = this, from = fn[i - up[i]], to = fn[i], key = from * 4294967296 + to;
    let arc = found.get(key);
    if (!arc) found.set(key, arc = {from, to, costs: new Array(this.n).fill(0), calls: [0, 0]});
    if (isOuter) for (const [k, total] of costs) arc.costs[k] += total[i];
    for (let side = 0; side < counts.length; side++) if (counts[side]) arc.calls[side] += counts[side][i];
  }
  list() { return [...this.found.values()]; }
}
