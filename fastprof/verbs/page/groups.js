// Contexts grouped by function: functions by self cost with their callers below (inverted), or one function with its
// callers above and its callees below (sandwich).
//
//     a;b 2  a;c;b 3  d 1      inverted   everything 6       sandwich of c   a 3
//                                         b 5       d 1                      c 3
//                                         c 3  a 2                           b 3
//                                         a 3
//
// Only groups wide enough to be visible are divided, so the work is bounded by what is on screen.
class GroupBoxes {
  // centre: the function of a sandwich, -1: inverted
  constructor(tree, centre) {
    const {n, fn, depth, parent} = tree;
    this.tree = tree;
    this.isInverted = centre < 0;
    this.figures = this.isInverted ? tree.self : tree.total;  // of a context, by value column
    this.weights = this.isInverted ? tree.own : tree.weight;
    const at = [], height = new Int32Array(n).fill(-1);  // below the function; -1: not in it
    let above = 0, below = 0;
    for (let i = 1; i < n; i++) {
      if (!this.weights[i]) continue;
      if (this.isInverted) at.push(i);
      else if (height[parent[i]] >= 0) below = Math.max(below, height[i] = height[parent[i]] + 1);
      else if (fn[i] === centre) {  // a recursive function counts once
        at.push(i);
        height[i] = 0;
        above = Math.max(above, depth[i] - 1);
      }
    }
    this.whole = at.reduce((sum, i) => sum + this.weights[i], 0) || 1;
    this.rows = this.isInverted ? tree.deepest + 1 : above + 1 + below;
    this.top = 0;
    this.titles = [];
    this.groups = [];
    this.root = this.group(null, this.isInverted ? NONE : centre, 0, this.isInverted ? 0 : above, 0, at, at);
  }
  // at: contexts; from: contexts that give the cost: for callers, the function they call.  step: rows towards its members.
  group(above, fn, x, row, step, at, from) {
    const width = from.reduce((sum, i) => sum + this.weights[i], 0) / this.whole;
    const found = {id: this.groups.length, above, fn, x, row, step, width, at, from, members: null};
    this.groups.push(found);
    return found;
  }
  // Neighbours of contexts: [contexts, those that give the cost].
  callers(at, from) {
    const found = [[], []];
    at.forEach((i, k) => {
      if (!this.tree.parent[i]) return;
      found[0].push(this.tree.parent[i]);
      found[1].push(from[k]);
    });
    return found;
  }
  callees(at) {
    const {child, children} = this.tree, found = [];
    for (const i of at) for (let c = child[i]; c < child[i + 1]; c++) if (this.weights[children[c]]) found.push(children[c]);
    return [found, found];
  }
  next({at, from, step}) {
    return step < 0 || this.isInverted ? this.callers(at, from) : this.callees(at);
  }
  members(group) {
    if (!group.members) {
      if (group.step) group.members = this.divided(group, group.step, ...this.next(group));
      else if (this.isInverted) group.members = this.divided(group, 1, group.at, group.from);
      else group.members = [...this.divided(group, -1, ...this.callers(group.at, group.from)),
        ...this.divided(group, 1, ...this.callees(group.at))];
    }
    return group.members;
  }
  divided(group, step, at, from) {
    const byFunction = new Map();
    at.forEach((i, k) => {
      const fn = this.tree.fn[i];
      if (!byFunction.has(fn)) byFunction.set(fn, [[], [], 0]);
      const found = byFunction.get(fn);
      found[0].push(i);
      found[1].push(from[k]);
      found[2] += this.weights[from[k]];
    });
    let x = group.x;
    return [...byFunction].sort((a, b) => b[1][2] - a[1][2] || a[0] - b[0]).map(([fn, [mine, costs]]) => {
      const found = this.group(group, fn, x, group.row + step, step, mine, costs);
      x += found.width;
      return found;
    });
  }
  visible(from, to, least) {
    const found = [], stack = [this.root];
    while (stack.length) {
      const group = stack.pop();
      found.push(group);
      for (const step of [-1, 1]) {
        const seen = this.members(group).filter(one => one.step === step && one.x < to && one.x + one.width > from);
        const small = seen.filter(one => one.width < least);
        stack.push(...seen.filter(one => one.width >= least), ...small.length === 1 ? small : []);
        if (small.length > 1) this.addRun(found, small);
      }
    }
    return found;
  }
  addRun(found, small) {
    const [{x, step, row: first, id}] = small;
    let at = small.flatMap(one => one.at), from = small.flatMap(one => one.from), range;
    for (let row = first, k = 0; at.length; row += step, k++) {
      const width = from.reduce((sum, i) => sum + this.weights[i], 0) / this.whole;
      range ??= [x, x + width];
      found.push({x, width, row, id: runId(id * 1024 + k), fn: NONE, many: at, from, range});
      [at, from] = this.next({at, from, step});
    }
  }
  cost(box, k) { return (box.from || this.groups[box.id].from).reduce((sum, i) => sum + this.figures[k][i], 0); }
  matches(box, matches) { return box.many ? box.many.some(i => matches[this.tree.fn[i]]) : matches[box.fn]; }
  fnOf(id) { return this.groups[id].fn; }
  // In the inverted view, a function's own cost is that of its group; of callers and callees, that of their contexts.
  own({id}) {
    const {at, from, step, row} = this.groups[id];
    if (this.isInverted || step < 0) return this.isInverted && row === 1 ? 1 : 0.3;
    return at.reduce((sum, i) => sum + this.tree.own[i], 0) / (from.reduce((sum, i) => sum + this.weights[i], 0) || 1);
  }
  range(id) { return [this.groups[id].x, this.groups[id].x + this.groups[id].width]; }
  row(id) { return this.groups[id].row; }
  parent(id) { return this.groups[id].above ? this.groups[id].above.id : -1; }
  firstChild(id) { return this.members(this.groups[id])[0]?.id ?? -1; }
  sibling(id, step) {
    const {above, step: way} = this.groups[id];
    const around = above ? above.members.filter(one => one.step === way) : [];
    return around[around.findIndex(one => one.id === id) + step]?.id ?? -1;
  }
}
