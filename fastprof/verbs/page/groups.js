// Contexts grouped by function: functions by self cost with their callers below (inverted), or one function with its
// callers above and its callees below (sandwich).
//
//     a;b 2  a;c;b 3  d 1      inverted   everything 6       sandwich of c   a 3
//                                         b 5       d 1                      c 3
//                                         c 3  a 2                           b 3
//                                         a 3
//
// Only groups wide enough to be visible are divided, so the work is bounded by what is on screen; what MANY contexts of a
// group narrower than two pixels call or are called by is one run.
const MANY = 32;

class GroupBoxes {
  // centre: the function of a sandwich, -1: inverted
  constructor(tree, centre) {
    const {n, fn, depth, parent} = tree;
    this.tree = tree;
    this.isInverted = centre < 0;
    this.figures = this.isInverted ? tree.self : tree.total;  // of a context, by value column
    this.weights = this.isInverted ? tree.own : tree.weight;
    const found = new Uint32Array(n), {weights} = this;
    let size = 0, above = 0, below = 0;
    if (this.isInverted) for (let i = 1; i < n; i++) if (weights[i]) found[size++] = i;
    const height = new Int32Array(this.isInverted ? 0 : n).fill(-1);  // below the function; -1: not in it
    for (let i = 1; i < height.length; i++) {
      if (!weights[i]) continue;
      if (height[parent[i]] >= 0) below = Math.max(below, height[i] = height[parent[i]] + 1);
      else if (fn[i] === centre) {  // a recursive function counts once
        found[size++] = i;
        height[i] = 0;
        above = Math.max(above, depth[i] - 1);
      }
    }
    const at = found.slice(0, size);
    this.whole = this.weightOf(at) || 1;
    this.slots = new Int32Array(tree.limit + 1).fill(-1);  // by function, while a group is divided
    this.rows = this.isInverted ? tree.deepest + 1 : above + 1 + below;
    this.top = 0;
    this.titles = [];
    this.groups = [];
    this.root = this.group(null, this.isInverted ? NONE : centre, 0, this.isInverted ? 0 : above, 0, at, at);
  }
  // at: contexts; from: contexts that give the cost: for callers, the function they call.  step: rows towards its members.
  group(above, fn, x, row, step, at, from, weight = this.weightOf(from)) {
    const width = weight / this.whole;
    const found = {id: this.groups.length, above, fn, x, row, step, width, at, from, members: null};
    this.groups.push(found);
    return found;
  }
  // Neighbours of contexts: [contexts, those that give the cost].
  callers(at, from) {
    const {parent} = this.tree, above = new Uint32Array(at.length);
    let n = 0, costs = from;
    for (let i = 0; i < at.length; i++) {
      const caller = parent[at[i]];
      if (caller) {
        if (costs !== from) costs[n] = from[i];
        above[n++] = caller;
      } else if (costs === from) costs = from.slice();
    }
    return n === at.length ? [above, from] : [above.subarray(0, n), costs.subarray(0, n)];
  }
  callees(at) {
    const {end} = this.tree, {weights} = this;
    let n = 0;
    for (const i of at) for (let c = i + 1; c < end[i]; c = end[c]) if (weights[c]) n++;
    const found = new Uint32Array(n);
    n = 0;
    for (const i of at) for (let c = i + 1; c < end[i]; c = end[c]) if (weights[c]) found[n++] = c;
    return [found, found];
  }
  weightOf(from) {
    const {weights} = this;
    let sum = 0;
    for (let i = 0; i < from.length; i++) sum += weights[from[i]];
    return sum;
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
    const {fn} = this.tree, slots = new Uint32Array(at.length), sizes = [], isSame = at === from, functions = [], {slots: slotOf, tree: {limit}} = this;
    for (let i = 0; i < at.length; i++) {
      const f = fn[at[i]], key = f < limit ? f : limit;  // NONE
      let slot = slotOf[key];
      if (slot < 0) {
        slotOf[key] = slot = sizes.push(0) - 1;
        functions.push(f);
      }
      slots[i] = slot;
      sizes[slot]++;
    }
    for (const f of functions) slotOf[Math.min(f, limit)] = -1;
    const mine = sizes.map(size => new Uint32Array(size)), costs = isSame ? mine : sizes.map(size => new Uint32Array(size)), n = new Uint32Array(sizes.length);
    for (let i = 0; i < at.length; i++) {
      const slot = slots[i], place = n[slot]++;
      mine[slot][place] = at[i];
      if (!isSame) costs[slot][place] = from[i];
    }
    let x = group.x;
    return functions.map((f, slot) => [f, slot, this.weightOf(costs[slot])]).sort((a, b) => b[2] - a[2] || a[0] - b[0]).map(([f, slot, weight]) => {
      const found = this.group(group, f, x, group.row + step, step, mine[slot], costs[slot], weight);
      x += found.width;
      return found;
    });
  }
  visible(from, to, least) {
    const found = [], stack = [this.root];
    while (stack.length) {
      const group = stack.pop();
      found.push(group);
      if (group.width < 2 * least && group.at.length > MANY && group.step && !group.members) {
        this.addRun(found, [{x: group.x, step: group.step, row: group.row + group.step, id: group.id}], this.next(group));
        continue;
      }
      const above = [], below = [];  // that are small
      for (const one of this.members(group)) {
        if (one.x >= to || one.x + one.width <= from) continue;
        if (one.width >= least) stack.push(one);
        else (one.step < 0 ? above : below).push(one);
      }
      for (const small of [above, below])
        if (small.length > 1) this.addRun(found, small);
        else if (small.length) stack.push(small[0]);
    }
    return found;
  }
  addRun(found, small, [first, ofFirst] = []) {
    const [{x, step, row: top, id}] = small, joined = lists => {
      const all = new Uint32Array(lists.reduce((sum, list) => sum + list.length, 0));
      let at = 0;
      for (const list of lists) {
        all.set(list, at);
        at += list.length;
      }
      return all;
    };
    let at = first || joined(small.map(one => one.at)), from = ofFirst || (step < 0 || this.isInverted ? joined(small.map(one => one.from)) : at), range;
    for (let row = top, k = 0, width, before = null; at.length; row += step, k++) {
      if (from !== before) width = this.weightOf(before = from) / this.whole;
      range ??= [x, x + width];
      found.push({x, width, row, id: runId(id * 1024 + k), fn: NONE, many: at, from, range});
      [at, from] = step < 0 || this.isInverted ? this.callers(at, from) : this.callees(at);
    }
  }
  cost(box, k) { return (box.from || this.groups[box.id].from).reduce((sum, i) => sum + this.figures[k][i], 0); }
  matches(box, matches) { return box.many ? box.many.some(i => matches[this.tree.fn[i]]) : matches[box.fn]; }
  fnOf(id) { return this.groups[id].fn; }
  // In the inverted view, a function's own cost is that of its group; of callers and callees, that of their contexts.
  own({id}) {
    const {at, from, step, row} = this.groups[id];
    if (this.isInverted || step < 0) return this.isInverted && row === 1 ? 1 : 0.3;
    return at.reduce((sum, i) => sum + this.tree.own[i], 0) / (this.weightOf(from) || 1);
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
