// Groups of the table's rows.  By file, object (of traces: category) or package a function has one group: self costs are
// those of its functions; inclusive costs come from the contexts, where a group within itself counts once.  By thread or label
// a function is in several groups, with its costs in the samples of each.
//
// Numbers of rows: functions, below `first`; groups; then the functions of divided groups.
//
// page: {rows(): n, first: the number of the first group, beyond all functions, groupsOf(kind): {groupOf: by function, keys: by group}, labels, rowFigure(name, k, row),
// tree(): of contexts, isExact(): whether the contexts have exact inclusive costs, columns(): value columns shown, thread(): chosen or -1,
// nameOf(fn)}
class RowGroups {
  constructor(page) {
    this.page = page;
    this.kind = "";
    this.unfolded = new Set();
  }
  choose(kind) {
    if (kind !== this.kind) this.unfolded.clear();
    this.kind = kind;
    this.keys = [];
    this.known = new Map();
    this.key = this.page.labels.keys.find(({name}) => kind === `by ${name}`) || null;  // of samples
    const {groupOf, keys} = kind && !this.key ? this.page.groupsOf(kind) : {groupOf: [], keys: []};
    this.groupOf = groupOf;
    this.keys.push(...keys);
    this.members = this.keys.map(() => []);
    for (let i = 0; i < Math.min(this.page.rows(), groupOf.length); i++) this.members[groupOf[i]].push(i);
    this.forget();
  }
  // The figures change with value, thread, label and transforms.
  forget() {
    this.inclusive = new Map();
    this.parts = new Map();  // by group and value column: the figures of its functions
    this.sums = null;
    if (!this.key) return;
    // the values of a key with a cost, which are numbered once, so that they stay unfolded
    for (const k of this.page.columns())
      for (const value of this.page.labels.split(this.key, k, this.page.thread()).costs.keys())
        if (!this.known.has(value)) this.known.set(value, this.keys.push(value) - 1);
  }
  isGroup(row) { return row >= this.page.first && row < this.page.first + this.keys.length; }
  // The function of a row.
  functionOf(row) { return row < this.page.first || this.isGroup(row) ? row : (row - this.page.first - this.keys.length) % this.page.first; }
  title(row) {
    if (!this.isGroup(row)) return this.page.nameOf(this.functionOf(row));
    const key = this.keys[row - this.page.first];
    return (this.key ? key.title : key) || "(none)";
  }
  count(row) { return this.key ? this.rowsOf(row).length : this.members[row - this.page.first].length; }
  // The rows of each group that has some; of functions only those in `rows`.
  divided(rows) {
    const {first} = this.page, found = new Map();
    if (this.key) {
      const kept = new Set(rows);
      for (let g = 0; g < this.keys.length; g++) {
        if (!this.page.columns().some(k => this.figure("row self", k, first + g) || this.figure("row inclusive", k, first + g))) continue;
        found.set(first + g, this.unfolded.has(first + g) ? this.rowsOf(first + g).filter(row => kept.has(this.functionOf(row))) : []);
      }
      return found;
    }
    for (const i of rows) {
      const group = first + this.groupOf[i];
      if (!found.has(group)) found.set(group, []);
      found.get(group).push(i);
    }
    return found;
  }
  rowsOf(group) {
    const {first, columns} = this.page, found = [], base = first + this.keys.length + (group - first) * first;
    const figures = columns().map(k => this.part(group, k));
    for (let fn = 0; fn < first; fn++) if (figures.some(of => of["row self"][fn] || of["row inclusive"][fn])) found.push(base + fn);
    return found;
  }
  // The figures of the functions in the samples of a group.
  part(group, k) {
    const id = `${group} ${k}`;
    if (!this.parts.has(id)) {
      const {labels, thread, tree} = this.page, {sets, isKept} = labels.kept(this.key), {key} = this, value = this.keys[group - this.page.first];
      const own = new Float64Array(tree().n), {node} = tree();
      const isOf = labels.sets.map(values => key.ofSets && labels.has(values, key, value));
      labels.each(k, (i, set, cost) => {
        if (node[i] < 0 || !sets[set] || !isKept(i) || (thread() >= 0 && !key.isThread && labels.threadOf[i] !== thread())) return;
        if (key.ofSets ? isOf[set] : key.valueOf(i) === value) own[node[i]] += cost;
      });
      this.parts.set(id, tree().figures(null, this.page.first, null, {self: own, total: tree().summed(own)}));
    }
    return this.parts.get(id);
  }
  figure(name, k, row) {
    const {first} = this.page, group = row - first;
    if (this.key && !this.isGroup(row)) return this.part(first + Math.floor((group - this.keys.length) / first), k)[name][this.functionOf(row)];
    if (this.key) {
      const id = `sums ${k}`;
      if (!this.inclusive.has(id)) this.inclusive.set(id, this.wholes(k));
      return this.inclusive.get(id)[group] || 0;
    }
    if (name !== "row inclusive") return this.members[group].reduce((sum, i) => sum + this.page.rowFigure(name, k, i), 0);
    if (!this.page.isExact()) return 0;
    if (!this.inclusive.has(k)) this.inclusive.set(k, this.page.tree().figures(k, this.keys.length, this.groupOf)["row inclusive"]);
    return this.inclusive.get(k)[group];
  }
  // What the samples of each group cost, in contexts that the tree has.
  wholes(k) {
    const {labels, thread, tree} = this.page, {sets, isKept} = labels.kept(this.key), {key} = this, {node} = tree();
    const found = new Float64Array(this.keys.length), ofSet = labels.sets.map(values => values.filter(value => value.key === key));
    labels.each(k, (i, set, cost) => {
      if (node[i] < 0 || !sets[set] || !isKept(i) || (thread() >= 0 && !key.isThread && labels.threadOf[i] !== thread())) return;
      const mine = key.ofSets ? ofSet[set] : [key.valueOf(i)];
      for (const value of mine.length ? mine : [NO_VALUE]) found[this.known.get(value)] += cost;
    });
    return found;
  }
  // The share of all self costs of the groups down to one, by self cost; -1 for a function in a divided group.
  cumulated(value, whole, row) {
    if (!this.isGroup(row)) return -1;
    if (!this.sums) {
      this.sums = new Map();
      let sum = 0;
      for (const group of this.keys.map((_, g) => this.page.first + g).sort((a, b) => value(b) - value(a) || a - b)) this.sums.set(group, sum += value(group));
    }
    return this.sums.get(row) / (whole || 1);
  }
}
