// What the time order has besides calls: counters as step lines, events as ticks, states of threads as bands.  Each is in a
// lane: rows of the height of a title, those of counters in a group above all threads, the others below their thread's name.
//
// lane: {kind: "counter", "marks" or "states", row, high: in rows, of: what tracksOf found}
const COUNTERS = "[counters]";  // the group, where threads have a name
const MOST_NAMES = 5;  // of events in a text
// The kinds of states: hue and strength in colours.js, what the legend calls them.
const STATES = [[/\bgc|garbage|safepoint|vmoperation/i, 4, 5, "GC, safepoints"], [/running|on.?cpu/i, 2, 5, "running"], [/runnable|ready|created/i, 1, 4, "runnable"],
  [/block|wait|park|sleep|monitor|lock|stopped|contend|off.?cpu/i, 0, 2, "waiting"], [/file|socket|\bi\/?o\b/i, 5, 4, "files, sockets"], [/(?:)/, 3, 3, "other states"]];

// A value with its unit: bytes, times, a share (1 is 100 %), or any text.
const numberFormatOf = new Intl.NumberFormat("en-US", {maximumSignificantDigits: 5});
const counterText = (value, unit = "") => UNITS.has(unit) ? figure(value, unit) : unit === "share" ? percent(value, 1)
  : (Number.isInteger(value) ? exact(value) : numberFormatOf.format(value)) + (unit && ` ${unit}`);
const rangeText = ({least, most, unit}) => `${counterText(least, unit)} to ${counterText(most, unit)}`;

// {counters: [{name, n, least, most, unit, owner: name of its thread, of: the same without the only process, thread, time, value}], marks: by thread {time, name, count}, states: by thread {begin,
// duration, name, depth}, events, names: of states}; or null.  Threads without calls are added to those of the time order.
const tracksOf = data => {
  const {head: {tracks, time}, column} = data;
  if (!tracks) return null;
  const threads = tracks.threads.map(name => {
    const at = time.threads.indexOf(name);
    return at < 0 ? time.threads.push(name) - 1 : at;
  });
  const owners = tracks.counters.map(({thread}) => tracks.threads[thread]), process = /^process \d+/.exec(owners[0] || "")?.[0];
  const isOne = process && owners.every(name => name === process || name.startsWith(`${process}, `));
  const steps = column("counter time"), values = column("counter value");
  let at = 0;
  const counters = tracks.counters.map((counter, c) => {
    const n = column("counter size")[c], points = Float64Array.from(steps.subarray(at, at + n));
    for (let i = 1; i < n; i++) points[i] += points[i - 1];
    return {...counter, thread: threads[counter.thread], owner: owners[c], of: isOne ? owners[c].slice(process.length + 2) : owners[c], time: points, value: values.subarray(at, at += n)};
  });
  const byThread = (kind, first, names) => {
    const found = new Map(), of = column(`${kind} thread`), begins = column(`${kind} ${first}`);
    for (let i = 0, now = 0; i < of.length; i++) {
      now = begins[i] + (i && of[i] === of[i - 1] ? now : 0);
      const t = threads[of[i]];
      if (!found.has(t)) found.set(t, {[first]: [], ...Object.fromEntries(names.map(name => [name, []]))});
      const one = found.get(t);
      one[first].push(now);
      for (const name of names) one[name].push(column(`${kind} ${name}`)[i]);
    }
    return found;
  };
  const names = (tracks.states || []).map(name => ({name, kind: STATES.findIndex(([pattern]) => pattern.test(name))}));
  return {counters, marks: byThread("mark", "time", ["name", "count"]), states: byThread("state", "begin", ["duration", "name", "depth"]), events: tracks.events, names};
};

// What the page lacks.
const trackFacts = ({tracks}, timeText) => {
  if (!tracks) return [];
  const {left_out: left, is_thinned: isThinned, states_left_out: states, shortest_state: shortest} = tracks;
  return [
    ...left ? [`counters left out: ${exact(left)}, those that change least`] : [],
    ...isThinned ? ["of values in quick succession the first, the least, the largest and the last one are here"] : [],
    ...states ? [`${plural(states, "state")} shorter than ${timeText(shortest)} left out`] : [],
  ];
};

// The rows of the lanes of a thread, and those of counters at a height of the window.
const laneRows = (tracks, t) => tracks ? tracks.marks.has(t) + tracks.states.has(t) : 0;
const counterHigh = (tracks, height) => 2 * tracks.counters.length * ROW <= 0.4 * height ? 2 : 1;

// The index of the last time that is not after `now`; -1: none.
const lastBefore = (times, now) => {
  let low = -1, high = times.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= now) low = middle;
    else high = middle;
  }
  return low;
};

class Lanes {
  // calls: with `tracks`; time: head.time; names: do counters of several threads need those
  constructor(calls, time) {
    [this.tracks, this.time, this.all] = [calls.tracks, time, []];
    const {counters} = this.tracks;
    this.areOfSeveral = new Set(counters.map(({owner}) => owner)).size > 1;
    this.pointed = null;  // {lane, time}: an event that was looked for
  }
  // Adds the counters that are shown.  The row below them.
  addCounters(row, shown, high) {
    for (const of of shown) {
      this.all.push({kind: "counter", row, high, of});
      row += high;
    }
    return row;
  }
  // Adds the lanes of a thread.
  addThread(row, t) {
    for (const kind of ["states", "marks"]) if (this.tracks[kind].has(t)) this.all.push({kind, row: row++, high: 1, of: this.tracks[kind].get(t), thread: t});
    return row;
  }
  titleOf({name, of}) { return this.areOfSeveral && of ? `${name} · ${of}` : name; }
  // at: {flame, y(row), from, to, width, height, style}
  draw(at) {
    for (const lane of this.all) {
      const top = at.y(lane.row), high = lane.high * ROW;
      if (top + high < AXIS || top > at.height) continue;
      this[lane.kind](lane, {...at, top, high});
    }
    if (!this.pointed) return;
    const {flame, from, to, width, style} = at, x = (this.pointed.time / this.length - from) / (to - from) * width;
    flame.pen.fillStyle = style("--accent");
    if (x >= 0 && x <= width) flame.pen.fillRect(x - 1, at.y(this.pointed.lane.row), 3, ROW);
  }
  get length() { return this.time.length || 1; }
  counter({of}, {flame: {pen}, flame, from, to, width, top, high, style}) {
    const {time, value, least, most} = of, {length} = this, scale = width / ((to - from) * length), columns = Math.ceil(width);
    const low = Math.min(0, least), reach = Math.max(0, most) - low || 1, room = high - 4;
    const y = v => top + 2 + room - room * (v - low) / reach;
    // of each column of pixels the least and the largest value; equal ones in a row are drawn together
    let i = lastBefore(time, from * length);
    const area = style("--bar"), line = style("--accent");
    let begun = -1, last = null;
    const end = x => {
      if (begun < 0) return;
      const [a, b] = last, zero = y(0);
      pen.fillStyle = area;
      pen.fillRect(begun, Math.min(y(b), zero), x - begun, Math.abs(y(b) - zero));
      pen.fillStyle = line;
      pen.fillRect(begun, y(b) - 0.75, x - begun, Math.max(1.5, y(a) - y(b)));
    };
    for (let x = 0; x < columns; x++) {
      const until = from * length + (x + 1) / scale;
      let a = i >= 0 ? value[i] : NaN, b = a;
      for (; i + 1 < time.length && time[i + 1] < until; i++) {
        a = Number.isNaN(a) ? value[i + 1] : Math.min(a, value[i + 1]);
        b = Number.isNaN(b) ? value[i + 1] : Math.max(b, value[i + 1]);
      }
      if (last && last[0] === a && last[1] === b) continue;
      end(x);
      [begun, last] = Number.isNaN(a) ? [-1, null] : [x, [a, b]];
    }
    end(width);
    this.name(flame, `${this.titleOf(of)}: ${rangeText(of)}`, top, style);
  }
  // A name on a chart.
  name(flame, text, top, style) {
    const {pen} = flame;
    pen.fillStyle = style("--back");
    pen.globalAlpha = 0.7;
    pen.fillRect(2, top + 2, Math.min(flame.holder.clientWidth, pen.measureText(text.slice(0, 400)).width + 6), ROW - 4);
    pen.globalAlpha = 1;
    flame.label(text, 0, top, flame.holder.clientWidth, style("--front"));
  }
  marks({of}, {flame: {pen}, from, to, width, top, style}) {
    const {length} = this, scale = width / (to - from), soft = style("--soft"), accent = style("--accent");
    let before = -9, room = 0;  // of a name: until the next tick
    for (let i = Math.max(0, lastBefore(of.time, from * length)); i < of.time.length; i++) {
      const x = Math.round((of.time[i] / length - from) * scale);
      if (x > width) break;
      if (x < 0 || x < before + 2) continue;
      pen.fillStyle = accent;
      pen.fillRect(x, top + 3, 2, ROW - 6);
      before = x;
      const next = i + 1 < of.time.length ? (of.time[i + 1] / length - from) * scale : Infinity;
      room = Math.min(next, width) - x - 8;
      if (room < 24) continue;
      const text = this.tracks.events[of.name[i]];
      if (pen.measureText(text.slice(0, 200)).width > room) continue;
      pen.fillStyle = soft;
      pen.fillText(text.slice(0, 200), x + 5, top + ROW / 2);
    }
  }
  states({of}, {flame: {pen}, flame, from, to, width, top, style}) {
    const {length} = this, scale = width / (to - from), theme = document.documentElement.dataset.theme;
    const ends = [];  // by depth: where the last band that is narrower than a pixel ends
    for (let i = 0; i < of.begin.length; i++) {
      const left = (of.begin[i] / length - from) * scale, right = left + of.duration[i] / length * scale, depth = Math.min(of.depth[i], 3);
      if (right < 0 || left > width || (right < (ends[depth] ?? -1) && right - left < 1)) continue;
      const x = Math.max(0, left), w = Math.max(1, Math.min(width, right) - x), inset = 1 + 4 * depth, [, hue, step] = STATES[this.tracks.names[of.name[i]].kind];
      const [fill, text] = SHADES[theme][hue][step].fill;
      pen.fillStyle = fill;
      pen.fillRect(x, top + inset, w > 3 ? w - 1 : w, ROW - 1 - inset);
      ends[depth] = x + 1;
      if (w > 30 && !(of.depth[i + 1] > of.depth[i])) flame.label(this.tracks.names[of.name[i]].name, x, top, w, text);
    }
    pen.fillStyle = style("--line");
    pen.fillRect(0, top + ROW - 1, width, 1);
  }
  // What is at a share of the time: {lane, time, many: of marks, i: of a state or a value}; null: nothing.
  at(lane, share, near) {
    const time = share * this.length, reach = near * this.length, {of} = lane;
    if (lane.kind === "counter") {
      const i = lastBefore(of.time, time);
      return i < 0 ? null : {lane, time, i};
    }
    if (lane.kind === "marks") {
      const many = [];
      for (let i = lastBefore(of.time, time + reach); i >= 0 && of.time[i] >= time - reach; i--) many.unshift(i);
      return many.length ? {lane, time: of.time[many[0]], many} : null;
    }
    let found = -1;
    for (let i = 0; i < of.begin.length && of.begin[i] <= time + reach; i++)
      if (of.begin[i] + of.duration[i] >= time - reach && (found < 0 || of.depth[i] >= of.depth[found])) found = i;
    return found < 0 ? null : {lane, time, i: found};
  }
  // Lines of text: [[bold, ...more], ...]
  texts({lane: {kind, of}, time, many, i}, {timeText, beginText}) {
    if (kind === "counter") {
      return [[counterText(of.value[i], of.unit), `at ${beginText(time)}, since ${beginText(of.time[i])}`], [of.name], [`${rangeText(of)} in ${plural(of.n, "value")}`], [of.owner]];
    }
    if (kind === "states") return [[timeText(of.duration[i]), percent(of.duration[i], this.length) + " of the whole time"], [this.tracks.names[of.name[i]].name], [`begins at ${beginText(of.begin[i])}`]];
    const counts = new Map();
    for (const m of many) counts.set(of.name[m], (counts.get(of.name[m]) || 0) + of.count[m]);
    const n = [...counts.values()].reduce((a, b) => a + b, 0), named = [...counts].slice(0, MOST_NAMES).map(([name, count]) => this.tracks.events[name] + (count > 1 ? ` ×${exact(count)}` : ""));
    return [[n > 1 ? plural(n, "event") : "event", `at ${beginText(time)}`], [named.join(", ") + (counts.size > MOST_NAMES ? ` and ${exact(counts.size - MOST_NAMES)} other names` : "")]];
  }
  // The next event after the one pointed to, or the one before (step -1), with this name or any.
  step(step, name = -1) {
    const from = this.pointed?.time ?? (step > 0 ? -1 : Infinity);
    let best = null;
    for (const lane of this.all) {
      if (lane.kind !== "marks") continue;
      lane.of.time.forEach((time, i) => {
        if ((name >= 0 && lane.of.name[i] !== name) || (step > 0 ? time <= from : time >= from)) return;
        if (!best || (step > 0 ? time < best.time : time > best.time)) best = {lane, time};
      });
    }
    return best;
  }
  // The longest band of a state.
  longest(name) {
    let best = null;
    for (const lane of this.all) {
      if (lane.kind !== "states") continue;
      const {of} = lane;
      for (let i = 0; i < of.name.length; i++) if (of.name[i] === name && (!best || of.duration[i] > best.duration)) best = {lane, duration: of.duration[i], time: of.begin[i]};
    }
    return best;
  }
  legend() {
    const theme = document.documentElement.dataset.theme, kinds = new Set();
    for (const {kind, of} of this.all) if (kind === "states") for (const name of of.name) kinds.add(this.tracks.names[name].kind);
    return [...kinds].sort((a, b) => a - b).map(k => [SHADES[theme][STATES[k][1]][STATES[k][2]].fill[0], STATES[k][3], "state"]);
  }
}

// The same as a table: counters with their values, events by name, states by name, within the range or the whole time.
class TrackTable {
  // page: {flame, head, timeText, perTick, tracks, show(found): of Lanes, unfold()}
  constructor(page) {
    this.page = page;
    this.table = new Table(byId("tracks-table"), {title: "Counters, events and states", choose: i => this.choose(this.rows[i])});
    [this.table.sort, this.table.down] = [3, false];
  }
  draw(isShown) {
    const {flame, tracks} = this.page, holder = byId("tracks");
    holder.hidden = !tracks || !isShown;
    if (holder.hidden) return;
    const length = this.page.head.time.length || 1, [from, to] = (flame.range || [0, 1]).map(share => share * length);
    this.rows = [...tracks.counters.map(of => this.counter(of, from, to)), ...this.sums("mark", tracks.marks, from, to), ...this.sums("state", tracks.states, from, to)].filter(({n}) => n);
    holder.hidden = !this.rows.length && !flame.range;
    const text = (value, i) => this.rows[i].kind === "counter" ? counterText(value, this.rows[i].of.unit) : "";
    this.table.show([
      {title: "values", width: 66, value: i => this.rows[i].n, write: i => exact(this.rows[i].n)},
      {title: "least", width: 78, value: i => this.rows[i].least ?? -Infinity, write: i => text(this.rows[i].least, i)},
      {title: "most, time", width: 94, value: i => this.rows[i].most ?? -Infinity, write: i => this.rows[i].kind === "state" ? this.page.timeText(this.rows[i].most) : text(this.rows[i].most, i)},
      {title: "name", width: 0, value: i => i, fill: (cell, i) => {
        const {kind, name, owner} = this.rows[i];
        cell.append(bothEnds(name, Math.min(15, name.length >> 1)), " ", element("span", {class: "in"}, owner || {mark: "event", state: "state"}[kind]));
        cell.title = owner ? `${name}\n${owner}` : name;
      }},
    ], this.rows.length);
    byId("tracks-table").style.maxHeight = `${Math.min(7, this.rows.length + 1) * HEIGHT + 4}px`;
    byId("tracks-title").textContent = flame.range ? "Counters, events and states in this range" : "Counters, events and states";
  }
  counter(of, from, to) {
    const row = {kind: "counter", name: of.name, owner: of.owner, of, n: 0, least: Infinity, most: -Infinity};
    if (from <= 0 && to >= this.page.head.time.length) return Object.assign(row, {n: of.n, least: of.least, most: of.most});
    const first = Math.max(0, lastBefore(of.time, from));
    for (let i = first; i < of.time.length && of.time[i] <= to; i++) {
      row.n++;
      [row.least, row.most] = [Math.min(row.least, of.value[i]), Math.max(row.most, of.value[i])];
    }
    return row;
  }
  // Events or states by name, of all threads.
  sums(kind, byThread, from, to) {
    const {tracks} = this.page, rows = new Map();
    for (const of of byThread.values())
      for (let i = 0; i < of.name.length; i++) {
        const begin = kind === "mark" ? of.time[i] : of.begin[i], time = kind === "mark" ? 0 : Math.min(to, begin + of.duration[i]) - Math.max(from, begin);
        if (begin > to || time < 0 || (kind === "mark" && begin < from)) continue;
        const name = of.name[i];
        if (!rows.has(name)) rows.set(name, {kind, at: name, name: kind === "mark" ? tracks.events[name] : tracks.names[name].name, n: 0, most: kind === "mark" ? undefined : 0});
        const row = rows.get(name);
        row.n += kind === "mark" ? of.count[i] : 1;
        row.most += time;
      }
    return [...rows.values()].sort((a, b) => (b.most || 0) - (a.most || 0) || b.n - a.n);
  }
  // Scrolls to a counter; goes to the next event of a name, after the last one to the first; to the longest band of a state.
  choose({kind, of, at}) {
    const {flame, tracks, head, show, unfold} = this.page, lanes = () => flame.boxes.lanes;
    const has = ([, {name}]) => name.includes(at), byThread = kind === "mark" ? tracks.marks : tracks.states;
    unfold(kind === "counter" ? [COUNTERS] : [...byThread].filter(has).map(([t]) => head.time.threads[t]));
    if (!lanes()) return;
    if (kind === "counter") show({lane: lanes().all.find(lane => lane.of === of), time: null});
    else if (kind === "state") show(lanes().longest(at));
    else {
      const next = lanes().step(1, at);
      if (!next) lanes().pointed = null;
      show(next || lanes().step(1, at));
    }
  }
}
