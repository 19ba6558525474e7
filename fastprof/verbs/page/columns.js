// The columns of the table of functions: as many as its width holds, each as wide as its figures.
//
// page: {head, state, column, has, unit, shownColumns, rowFigure, rowFigures, isInclusiveKnown, ofThread, view, total, nameOf,
// rowName(cell, row), counted}
const LEAST_NAME = 132;  // pixels that figures leave to names
const pen = document.createElement("canvas").getContext("2d");
const widthOf = texts => {
  pen.font = "600 13px system-ui, sans-serif";
  return 16 + Math.ceil(Math.max(...texts.map(text => pen.measureText(text).width)));
};

// Of the first n figures where the largest and the least are, and the smallest that is not 0; and the 20 largest without
// their signs, the largest first.
const FEW = 20, LISTED = 2 * FEW;
const summaries = new WeakMap();  // by array of figures
const list = (largest, i, size) => {
  largest.splice(largest.findLastIndex(one => one.size >= size) + 1, 0, {i, size});
  if (largest.length > LISTED) largest.pop();
};
const summaryOf = (items, n) => {
  let most = -1, least = -1, small = -1, highest = -Infinity, lowest = Infinity, smallest = Infinity, last = -1;  // of those listed
  const largest = [];
  for (let i = 0; i < n; i++) {
    const cost = items[i], size = cost < 0 ? -cost : cost;
    if (size < smallest && size > 0) [small, smallest] = [i, size];
    if (cost > highest) [most, highest] = [i, cost];
    if (cost < lowest) [least, lowest] = [i, cost];
    if (!(size > last)) continue;
    list(largest, i, size);
    if (largest.length === LISTED) last = largest[LISTED - 1].size;
  }
  return {most, least, small, largest};
};
// That of figures of which few are others than before; null: all of them have to be looked at.
const summaryAfter = (items, n, {before, changed}) => {
  const known = summaries.get(before)?.get(n);
  if (!known || changed.size > FEW) return null;
  let {least, small} = known;
  const largest = known.largest.filter(({i}) => !changed.has(i)), last = known.largest.at(-1)?.size;
  for (const i of changed) {
    const cost = items[i], size = Math.abs(cost);
    if (i === least || i === small) return null;
    if (cost < items[least]) least = i;
    if (size && size < Math.abs(items[small])) small = i;
    if (size >= last) list(largest, i, size);
  }
  const most = largest.length ? largest[0].i : -1;
  return largest.length < Math.min(FEW, n) || small < 0 || !(items[most] > 0) ? null : {most, least, small, largest};
};
const summary = (items, n) => {
  if (!summaries.has(items)) summaries.set(items, new Map());
  const known = summaries.get(items), change = figureChanges.get(items);  // by n
  if (!known.has(n)) known.set(n, (change && summaryAfter(items, n, change)) ?? summaryOf(items, n));
  const {most, least, small, largest} = known.get(n);
  return {extremes: [most, least, small].filter(i => i >= 0), few: largest.slice(0, FEW).map(({size}) => size)};
};
// Which of the first n functions have a figure in one of these arrays.
const rowsKnown = new WeakMap();  // by the first array: {lists, n, rows}
const rowsOf = (lists, n) => {
  const kept = new Uint8Array(n), found = new Uint32Array(n);
  for (const items of lists) for (let i = Math.min(n, items.length) - 1; i >= 0; i--) if (items[i]) kept[i] = 1;
  let size = 0;
  for (let i = 0; i < n; i++) if (kept[i]) found[size++] = i;
  return found.subarray(0, size);
};
const rowsAfter = (lists, n) => {
  const changes = lists.map(items => figureChanges.get(items)), changed = changes[0]?.changed, known = rowsKnown.get(changes[0]?.before);
  if (known?.n !== n || changed.size > FEW || lists.length !== known.lists.length || changes.some((one, k) => one?.before !== known.lists[k])) return null;
  let {rows} = known;
  for (const f of changed) {
    const at = firstOf(rows, i => i >= f), has = rows[at] === f;
    if (has === lists.some(items => items[f])) continue;
    const found = new Uint32Array(rows.length + (has ? -1 : 1));
    found.set(rows.subarray(0, at));
    if (!has) found[at] = f;
    found.set(rows.subarray(has ? at + 1 : at), has ? at : at + 1);
    rows = found;
  }
  return rows;
};
const rowsWith = (lists, n) => {
  if (!lists.length) return new Uint32Array(0);
  const known = rowsKnown.get(lists[0]);
  if (known?.n === n && known.lists.length === lists.length && known.lists.every((items, k) => items === lists[k])) return known.rows;
  const rows = rowsAfter(lists, n) ?? rowsOf(lists, n);
  rowsKnown.set(lists[0], {lists, n, rows});
  return rows;
};
const NO_FIGURES = new Float64Array(0);

const functionColumns = page => {
  const {head, state, unit, shownColumns, rowFigure, column} = page;
  // Figures of a column with its longest texts: its largest, least and smallest figures.
  const number = (text, value, scale, more = {}) => {
    const title = text + (scale.unit ? ` ${scale.unit}` : ""), write = more.write || (i => scale.write(value(i)));
    const texts = summary(value.items || Float64Array.from({length: page.rows()}, (_, i) => value(i)), page.rows()).extremes.map(write);
    const own = texts.some(text => text.includes(" ")) ? [UNITS.get(unit().toLowerCase())?.[1] === BYTES ? "+1,023 KiB" : "+999 ms"] : [];  // figures with their own units
    return {title, value, write, width: widthOf([`${title} ▾`, ...texts, ...own]), ...more};
  };
  const share = (title, value, whole, more = {}) => ({title, width: widthOf([`${title} ▾`, "-100.0"]), value, write: i => percent(value(i), whole).replace(" %", ""), ...more});
  const barOf = (value, whole) => i => whole ? Math.min(1, Math.abs(value(i)) / Math.abs(whole)) : 0;
  // The share of all self costs of the rows down to each, by self cost.
  const summed = (value, whole) => {
    let sums = null;
    return i => {
      if (!sums) {
        const n = page.rows(), rows = new Uint32Array(n);
        let size = 0, sum = 0, ofPositive = 0;
        for (let row = 0; row < n; row++) if (value(row) && !page.isCycle(row)) rows[size++] = row;
        const sorted = ranked(rows.subarray(0, size), value, true);
        for (const row of sorted) ofPositive += Math.max(0, value(row));
        sums = new Float64Array(n).fill(ofPositive);  // of rows of 0
        for (const row of sorted) sums[row] = sum += value(row);
      }
      return i < page.rows() ? sums[i] / (whole || 1) : 0;
    };
  };
  const scales = columns => columns.map(largest => scaleOf(Math.max(0, ...largest), unit(), largest, {beside: Math.max(0, ...columns.flat())}));
  const largestOf = name => shownColumns().flatMap(k => {
    const items = page.rowFigures(name, k);
    return summary(items, items.length).few;
  });
  // Of a table as it is now; groups have figures of their own.
  const figureOf = (name, k) => {
    const items = k < 0 ? NO_FIGURES : page.rowFigures(name, k), n = items.length;
    return Object.assign(i => i < n ? items[i] : rowFigure(name, k, i), {items: n >= page.rows() ? items : null});
  };
  const self = k => figureOf("row self", k), inclusive = k => figureOf("row inclusive", k);

  const ofTwo = (own, all) => {
    const {old, new: next} = state.event, delta = of => {
      const [after, before] = [of(next), of(old)];
      return i => after(i) - before(i);
    };
    const kind = value => i => value(i) > 0 ? "more" : value(i) < 0 ? "less" : "";
    const change = (of, scale, what) => {
      const value = delta(of), before = of(old), part = i => before(i) ? value(i) / Math.abs(before(i)) : value(i) ? Infinity : 0;
      return [
        number(`Δ ${what}`, value, scale, {write: i => signed(value(i), scale.write(value(i))), key: i => Math.abs(value(i)), kind: kind(value)}),
        {title: "Δ %", width: widthOf(["+1,000.0"]), value: part, key: i => Math.abs(part(i)), kind: kind(value),
          write: i => before(i) ? signed(value(i), percent(value(i), Math.abs(before(i))).replace(" %", "")) : value(i) ? "new" : "0.0"},
        number(`old ${what}`, before, scale), number(`new ${what}`, of(next), scale),
      ];
    };
    const found = [change(self, own, "self"), ...page.isInclusiveKnown() ? [change(inclusive, all, "incl.")] : []];
    // the most important first
    const order = [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [0, 3], [1, 2], [1, 3]].flatMap(([part, at]) => found[part] ? [found[part][at]] : []);
    return {columns: found.flat(), order};
  };
  const ofCalls = () => {
    const figure = name => i => column(`row ${name}`)[i] || 0;
    const found = [number("ended", figure("ended"), scaleOf(1, "")),
      ...[["min", "min"], ["median", "median"], ["90 %", "p90"], ["99 %", "p99"], ["max", "max"]].map(([title, name]) => {
        const all = column(`row ${name}`), largest = all.reduce((a, b) => Math.max(a, b), 0);
        return number(title, figure(name), scaleOf(largest, head.durations.unit, [...all], {lost: 0}));
      })];
    return {columns: found, order: [2, 4, 5, 0, 3, 1].map(at => found[at])};
  };
  const ofOne = (own, all) => {
    const {old} = state.event, whole = state.ranged ? state.ranged.sum : page.ofThread() && old >= 0 ? page.view.tree.total[old][0] : page.total();
    const sum = summed(self(old), whole);
    const shares = [share("self %", self(old), whole, {bar: barOf(self(old), whole)}),
      ...page.isInclusiveKnown() ? [share("incl. %", inclusive(old), whole, {bar: barOf(inclusive(old), whole)})] : []];
    const costs = [number("self", self(old), own), ...page.isInclusiveKnown() ? [number("incl.", inclusive(old), all)] : []];
    const calls = state.ranged ? state.ranged.calls && (i => state.ranged.calls[i] || 0) : page.ofThread() ? page.counted && self(page.counted.old) : page.has("row calls 0") && (i => column("row calls 0")[i] || 0);
    const counts = calls ? [number("calls", calls, scaleOf(1, ""))] : [];
    const sumOfRow = i => i < page.rows() ? sum(i) : page.rowGroups().cumulated(self(old), whole, i);
    const sums = {title: "sum %", width: widthOf(["sum % ▾"]), value: sumOfRow, write: i => !page.isCycle(i) && sumOfRow(i) >= 0 ? (100 * sumOfRow(i)).toFixed(1) : "", key: i => -sumOfRow(i)};
    const shown = [costs[0], shares[0], sums, ...costs[1] ? [costs[1], shares[1]] : [], ...counts];
    return {columns: shown, order: [...shares, ...costs, ...counts, sums]};
  };
  // width: of the table
  return width => {
    const [own, all] = scales([largestOf("row self"), largestOf("row inclusive")]);  // fit the largest rows, which are visible first
    const {columns, order} = byId("figures").value === "calls" ? ofCalls() : head.compared ? ofTwo(own, all) : ofOne(own, all);
    let room = width - LEAST_NAME - 14;
    const kept = new Set();
    for (const one of order) {
      if (kept.size && one.width > room) break;
      kept.add(one);
      room -= one.width;
    }
    return [...columns.filter(one => kept.has(one)), {title: "Function", width: 0, value: page.nameOf, fill: page.rowName, isFixed: !page.rowGroups().kind}];
  };
};
