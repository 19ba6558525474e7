// Calls from function to function: of all samples as the page has them, of a thread or a label from its contexts.
class Calls {
  constructor(data) {
    this.data = data;
    this.known = new Map();
  }
  // Callers (callee 0) or callees (1) of a function: [{other, costs by value column, calls by side}].
  list(fn, callee) {
    const {column, head} = this.data, rows = column("arc row"), others = column("arc function"), isCallee = column("arc callee"), found = [];
    for (let at = firstOf(rows, row => row >= fn); rows[at] === fn; at++)
      if (isCallee[at] === callee) found.push({
        other: others[at], costs: head.values.map((_, k) => column(`arc cost ${k}`)[at]),
        calls: [0, 1].map(side => column(`arc calls ${side}`)[at] || 0),
      });
    return found;
  }
  ofOne(tree, key, fn, columns, counted) {
    if (!this.known.has(key)) {
      const found = tree.arcsOf(fn, columns, counted), shown = ({costs, calls}, other) => ({other, costs, calls});
      this.known.set(key, [found.filter(({to}) => to === fn).map(arc => shown(arc, arc.from)), found.filter(({from}) => from === fn).map(arc => shown(arc, arc.to))]);
    }
    return this.known.get(key);
  }
  // Calls of functions to themselves, from the contexts of a tree of all threads.
  ofItself(tree, columns, counted) {
    const key = `itself ${columns}`;
    if (!this.known.has(key)) this.known.set(key, tree.loops(columns, counted));
    return this.known.get(key);
  }
  // The same from the contexts of a tree.  columns: the value columns whose costs are wanted; counted: by side the value column of calls, -1: none.  isOfAll: of many functions,
  // which are found together; else of one after the other
  inTree(tree, id, columns, counted, isOfAll) {
    const key = `${columns}\n${id}`;
    if (this.known.has(key)) return this.known.get(key);
    if (this.known.size > 8) this.known.clear();
    if (!isOfAll) return (fn, callee) => this.ofOne(tree, `${key} ${fn}`, fn, columns, counted)[callee];
    const callers = new Map(), callees = new Map();
    for (const arc of tree.arcs(columns, counted)) {
      for (const [map, fn, other] of [[callers, arc.to, arc.from], [callees, arc.from, arc.to]]) {
        if (!map.has(fn)) map.set(fn, []);
        map.get(fn).push({other, costs: arc.costs, calls: arc.calls});
      }
    }
    const found = (fn, callee) => (callee ? callees : callers).get(fn) || [];
    this.known.set(key, found);
    return found;
  }
}
