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
    const {n, fn, depth, up} = tree;
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
      if (height[i - up[i]] >= 0) below = Math.max(below, height[i] = height[i - up[i]] + 1);
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
  // of, place: the division that it is part of, and where
  group(above, fn, x, row, step, at, from, weight = this.weightOf(from), of = null, place = 0) {
    const width = weight / this.whole;
    const found = {id: this.groups.length, above, fn, x, row, step, width, at, from, of, place, divisions: null};
    this.groups.push(found);
    return found;
  }
  // Neighbours of contexts: [contexts, those that give the cost].
  callers(at, from) {
    const {up} = this.tree, above = new Uint32Array(at.length);
    let n = 0, costs = from;
    for (let i = 0; i < at.length; i++) {
      const caller = at[i] - up[at[i]];
      if (caller) {
        if (costs !== from) costs[n] = from[i];
        above[n++] = caller;
      } else if (costs === from) costs = from.slice();
    }
    return n === at.length ? [above, from] : [above.subarray(0, n), costs.subarray(0, n)];
  }
  callees(at) {
    const {span} = this.tree, {weights} = this;
    let n = 0;
    for (const i of at) for (let c = i + 1; c < i + span[i]; c += span[c]) if (weights[c]) n++;
    const found = new Uint32Array(n);
    n = 0;
    for (const i of at) for (let c = i + 1; c < i + span[i]; c += span[c]) if (weights[c]) found[n++] = c;
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
  divisions(group) {
    group.divisions ??= group.step ? [new Division(this, group, group.step, ...this.next(group))] : this.rootDivisions();
    for (const division of group.divisions) while (!division.proceed());
    return group.divisions;
  }
  // Those of the root, which may be prepared in parts.
  rootDivisions() {
    const {at, from} = this.root;
    return this.root.divisions ??= this.isInverted ? [new Division(this, this.root, 1, at, from)]
      : [new Division(this, this.root, -1, ...this.callers(at, from)), new Division(this, this.root, 1, ...this.callees(at))];
  }
  visible(from, to, least) {
    const found = [], stack = [this.root];
    while (stack.length) {
      const group = stack.pop();
      found.push(group);
      if (group.width < 2 * least && group.at.length > MANY && group.step && !group.divisions) {
        this.addRun(found, group.x, group.step, group.row + group.step, group.id, ...this.next(group));
        continue;
      }
      for (const division of this.divisions(group)) {
        const {x, step} = division, begin = firstOf(x, end => end > from) - 1, stop = Math.min(division.n, firstOf(x, begin => begin >= to));
        let place = Math.max(0, begin);
        for (; place < stop && x[place + 1] - x[place] >= least; place++) stack.push(division.one(place));
        if (stop - place === 1) stack.push(division.one(place));
        else if (stop > place) this.addRun(found, x[place], step, group.row + step, division.one(place).id, ...division.contexts(place, stop));
      }
    }
    return found;
  }
  // What is too narrow to be seen and its callers or callees, a box in each row.
  addRun(found, x, step, top, id, at, from) {
    if (step < 0 || this.isInverted) {
      new CallerRun(this, x, step, top, id, at, from).addTo(found);
      return;
    }
    const range = [x, x + this.weightOf(from) / this.whole];
    for (let row = top, k = 0; at.length; row += step, k++) {
      found.push({x, width: this.weightOf(from) / this.whole, row, id: runId(id * 1024 + k), fn: NONE, many: at, from, range});
      [at, from] = this.callees(at);
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
  firstChild(id) { return this.divisions(this.groups[id]).find(({n}) => n)?.one(0).id ?? -1; }
  sibling(id, step) {
    const {of, place} = this.groups[id];
    return of?.one(place + step)?.id ?? -1;
  }
}
// Narrow contexts and their callers.  How many callers a context has is its depth, so that one pass finds the boxes of all rows.
class CallerRun {
  constructor(boxes, x, step, top, id, at, from) { Object.assign(this, {boxes, x, step, top, id, at, from}); }
  addTo(found) {
    const {boxes, x, step, top, id, at, from} = this, {tree: {depth, up, deepest}, weights, whole} = boxes;
    const sums = boxes.sumsByDepth ??= new Float64Array(deepest + 2), counts = boxes.countsByDepth ??= new Uint32Array(deepest + 2);
    let most = 0, sum = 0, count = 0;
    for (let i = 0; i < at.length; i++) {
      const deep = depth[at[i]];
      sums[deep] += weights[from[i]];
      counts[deep]++;
      if (deep > most) most = deep;
    }
    const mine = new Array(most);
    for (let k = most; k > 0; k--) {  // the outermost callers are those of the deepest
      sum += sums[k];
      count += counts[k];
      sums[k] = counts[k] = 0;
      mine[k - 1] = new CallerBox(this, x, top + step * (k - 1), sum / whole, runId(id * 1024 + k - 1), count, k - 1);
    }
    const range = [x, x + sum / whole], each = Math.ceil(at.length / SAMPLES);
    for (let i = 0; i < at.length; i += each) for (let node = at[i], k = 0; node && k < most; node -= up[node], k++) mine[k].sample.push(node);
    for (const box of mine) {
      box.range = range;
      if (!box.sample.length) box.sample.push(box.many[0]);
      found.push(box);
    }
  }
}
class CallerBox {
  // place: how many callers away
  constructor(run, x, row, width, id, count, place) {
    this.x = x;
    this.width = width;
    this.row = row;
    this.id = id;
    this.fn = NONE;
    this.run = run;
    this.count = count;
    this.place = place;
    this.range = null;
    this.sample = [];
    this.mean = null;
    this.known = null;
  }
  // The contexts, and those that give the cost.
  get contexts() {
    if (!this.known) {
      this.known = [this.run.at, this.run.from];
      for (let k = 0; k < this.place; k++) this.known = this.run.boxes.callers(...this.known);
    }
    return this.known;
  }
  get many() { return this.contexts[0]; }
  get from() { return this.contexts[1]; }
}
// The groups that a group consists of in one direction, the largest first; only those that are looked at are made.
//
//   n, fn        how many; the function of each
//   at, from     the contexts of all, those of a group from begins[place] on
//   x            where each begins, and the last one ends
class Division {
  constructor(boxes, group, step, at, from) {
    Object.assign(this, {boxes, group, step, made: new Map(), todo: this.parts(at, from)});
  }
  // Does a part of the work; whether all is done.
  proceed() { return this.todo.next().done; }
  *parts(at, from) {
    const {boxes: {tree: {limit}, weights, whole}, group} = this, {slots, functions} = this.slotted(at);
    yield;
    const n = this.n = functions.length, sums = new Float64Array(n), sizes = new Uint32Array(n);
    for (let i = 0; i < at.length; i++) {
      sums[slots[i]] += weights[from[i]];
      sizes[slots[i]]++;
    }
    yield;
    const byFunction = ranked(Uint32Array.from(functions, (_, slot) => slot), slot => functions[slot], false);
    const order = ranked(byFunction, slot => sums[slot], true);
    this.fn = order.map(slot => functions[slot] < limit ? functions[slot] : NONE);
    this.weights = Float64Array.from(order, slot => sums[slot]);
    const begins = this.begins = new Uint32Array(n + 1), x = this.x = new Float64Array(n + 1).fill(group.x), next = sizes.slice();
    order.forEach((slot, place) => {
      next[slot] = begins[place];
      begins[place + 1] = begins[place] + sizes[slot];
      x[place + 1] = x[place] + sums[slot] / whole;
    });
    yield;
    const mine = this.at = new Uint32Array(at.length), costs = this.from = at === from ? mine : new Uint32Array(at.length);
    for (let i = 0; i < at.length; i++) {
      const to = next[slots[i]]++;
      mine[to] = at[i];
      costs[to] = from[i];
    }
  }
  // Numbers of the functions of contexts, in the order in which they are met.
  slotted(at) {
    const {tree: {fn, limit}, slots: slotOf} = this.boxes, slots = new Uint32Array(at.length), functions = [];
    for (let i = 0; i < at.length; i++) {
      const f = Math.min(fn[at[i]], limit);  // NONE
      if (slotOf[f] < 0) slotOf[f] = functions.push(f) - 1;
      slots[i] = slotOf[f];
    }
    for (const f of functions) slotOf[f] = -1;
    return {slots, functions};
  }
  // The group at a place, if there is one.
  one(place) {
    const {boxes, group, step, made} = this;
    if (place >= 0 && place < this.n && !made.has(place)) {
      const [at, from] = this.contexts(place, place + 1);
      made.set(place, boxes.group(group, this.fn[place], this.x[place], group.row + step, step, at, from, this.weights[place], this, place));
    }
    return made.get(place);
  }
  // The contexts of the groups from one place to another, and those that give the cost.
  contexts(first, stop) {
    const {at, from, begins} = this, mine = at.subarray(begins[first], begins[stop]);
    return [mine, at === from ? mine : from.subarray(begins[first], begins[stop])];
  }
}
