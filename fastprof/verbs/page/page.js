// The page: its state, and what it draws from it.
const begin = async () => {
  const data = await readData();
  const {head, column, has} = data;
  const texts = head.texts;
  const names = column("function name"), filesOf = column("function file"), objects = column("function object"), lines = column("function line");
  const nRows = head.rows, cycles = column("row cycle");
  const root = document.documentElement;

  // One value type is shown: the column of one profile, or the columns of both sides of a comparison.
  const events = head.events.map((event, e) => {
    const of = side => head.values.findIndex(value => value.event === e && value.side === side);
    return {...event, index: e, old: of(0), new: of(1)};
  }).filter(event => event.old >= 0 || event.new >= 0);
  const title = event => event.name + (event.unit && event.unit !== event.name ? ` (${event.unit})` : "");
  const unitOf = event => event.unit || (UNITS.has(event.name.toLowerCase()) ? event.name : "");
  const state = {
    event: events.find(event => event.index === head.shown) || events[0] || {name: "nothing", unit: "", old: -1, new: -1},
    thread: -1, order: "heavy", matches: null, search: "", chosen: -1, centre: -1, ranged: null,
  };
  const unit = () => unitOf(state.event);
  const columnOf = (name, k, i) => k < 0 ? 0 : column(`${name} ${k}`)[i] || 0;
  // Figures of the table: with a selected thread they come from its contexts, unless those are estimates.
  const labels = new Labels(data);
  const ofThread = () => state.ranged || ((state.thread >= 0 || labels.isChosen) && !head.estimated);
  const partTitle = () => [state.thread >= 0 && "this thread", labels.title()].filter(Boolean).join(", ");
  const figuresOfThreads = new Map();
  const rowFigures = (name, k) => {
    if (state.ranged) return state.ranged[name];
    if (!ofThread()) return column(`${name} ${k}`);
    const key = `${state.thread} ${k} ${labels.id}`;
    if (!figuresOfThreads.has(key)) figuresOfThreads.set(key, view.tree.figures(k, nRows));
    return figuresOfThreads.get(key)[name];
  };
  const rowFigure = (name, k, i) => k < 0 ? 0 : rowFigures(name, k)[i] || 0;
  // Cachegrind's files have no calls.
  const isInclusiveKnown = () => ofThread() || shownColumns().every(k => has(`row inclusive ${k}`));
  const counted = events.find(event => event.name.toLowerCase() === "calls");
  const shownColumns = () => [state.event.old, state.event.new].filter(k => k >= 0);
  const total = () => state.event.old < 0 ? 0 : head.totals[state.event.old];
  const totalNew = () => state.event.new < 0 ? 0 : head.totals[state.event.new];
  const base = () => head.compared ? Math.max(Math.abs(total()), Math.abs(totalNew())) : total();

  const nameOf = fn => fn === NONE ? "[pruned]" : texts[names[fn]] || "???";
  const place = fn => {
    const file = texts[filesOf[fn]], object = texts[objects[fn]];
    return [file && file + (lines[fn] ? `:${lines[fn]}` : ""), object].filter(Boolean).join(" · ");
  };
  const shortNames = new Map();
  const labelOf = fn => {
    if (!shortNames.has(fn)) shortNames.set(fn, shortName(nameOf(fn)));
    return shortNames.get(fn);
  };
  // If all threads belong to one process, their names omit it.
  const process = /^(?:process \d+, (?=thread )|[^:]+: (?=.))/.exec(head.threads[0] || "")?.[0];
  const isOne = process && head.threads.every(name => name.startsWith(process) || name === "[pruned]");
  const threadLabel = name => isOne ? name.replace(process, "") : name;
  const isThreadShown = () => {
    const {threads} = labels.kept(), names = new Set(head.threads.filter((_, t) => threads[t] && (state.thread < 0 || t === state.thread)));
    return name => names.has(name) || (state.thread < 0 && !labels.isChosen);  // contexts of a thread may be pruned
  };
  const threadName = () => state.thread < 0 ? null : head.threads[state.thread];

  // ---- colours

  const isDark = () => root.dataset.theme === "dark";
  const colours = new Colours({
    data, nameOf,
    theme: () => root.dataset.theme,
    matches: () => state.matches,
    isMatch: box => flame.boxes.matches(box, state.matches),
    change(box) {  // as a share of the zoomed box
      const [before, after] = [state.event.old, state.event.new].map(k => k < 0 ? 0 : flame.boxes.cost(box, k));
      return (after - before) / (base() * Math.max(flame.to - flame.from, box.width) || 1);
    },
  });
  const view = {
    tree: null, matches: null, chosen: -1,
    name: (fn, id) => fn === NONE && id === 0 ? labels.title() || "everything" : nameOf(fn),
    label: (fn, id) => fn === NONE ? view.name(fn, id) : labelOf(fn),
    // ticks of the time axis at round times, as shares of the whole time
    marks(from, to, most) {
      const length = head.time.length || 1, least = (to - from) * length * perTick / most;
      const power = 10 ** Math.floor(Math.log10(least));
      const step = [1, 2, 5, 10].find(n => n * power >= least) * power;
      const write = axisText(to * length, step / perTick);
      const found = [], share = step / perTick / length;
      for (let i = Math.ceil(from / share); i * share < to && found.length <= most; i++) found.push([i * share, write(i * share * length)]);
      return found;
    },
    colour: box => colours.of(box),
  };

  // ---- the flame graph

  const trees = new Map();
  // Times are nanoseconds, or ticks if the length of a tick is unknown.
  const hertz = head.time && head.time.ticks_per_second, perTick = hertz ? 1e9 / hertz : 1;
  const timeText = ticks => hertz ? figure(Math.round(ticks * perTick), "ns") : `${exact(Math.round(ticks))} ticks`;
  // Points in time: in the unit of the latest, with enough digits to distinguish neighbours.
  const axisText = (latest, step) => {
    if (!hertz) return ticks => `${exact(Math.round(ticks))} ticks`;
    const [unit, divisor] = TIME.find(([, , below]) => latest * perTick < below);
    const places = divisor === 1 ? 0 : Math.max(0, Math.ceil(-Math.log10(step * perTick / divisor) - 1e-9));
    return ticks => `${fixed(ticks * perTick / divisor, places)} ${unit}`;
  };
  const beginText = ticks => axisText(head.time.length, (flame.to - flame.from) * head.time.length / 1e4)(ticks);
  const folded = new Set();  // names of threads
  const timeBoxes = () => new TimeBoxes(data, isThreadShown(), folded, fn => labels.isFunctionKept(fn));
  // With a time range the table sums the time of the calls within it that are in this page.
  const timeEvent = events.find(event => event.name.toLowerCase() === "time");
  const setRange = range => {
    flame.range = range;
    if (range && timeEvent) state.event = timeEvent;
    select.value = events.indexOf(state.event);
    sumRange();
    drawTable();
    filter();
    drawDetails();
    flame.draw();
    sayBox(null);
    remember(true);
  };
  const sumRange = () => {
    state.ranged = null;
    if (!flame.range || !flame.boxes.isTimed || state.event !== timeEvent) return;
    const {own, all, calls, sum, n} = flame.boxes.within(flame.range, nRows), units = figures => figures.map(ticks => ticks * perTick);
    state.ranged = {"row self": units(own), "row inclusive": units(all), calls, sum: sum * perTick, n};
  };
  const flame = new Flame(view, {
    hover: box => sayBox(box),
    choose: fn => { if (fn !== NONE) choose(fn, "flame"); },
    painted: drawn => drawLegend(drawn),
    moved: isStep => remember(isStep),
    range: range => setRange(range),
    fold(names) {  // collapses these threads, or expands them if all of them are collapsed
      const areFolded = names.every(name => folded.has(name));
      for (const name of names) folded[areFolded ? "delete" : "add"](name);
      flame.show(timeBoxes(), true);
      if (state.ranged) setRange(flame.range);
      remember(true);
    },
  });
  const drawFlame = () => {
    if (!trees.has(state.thread)) trees.set(state.thread, new Tree(data, state.thread));
    view.tree = trees.get(state.thread);
    if (view.tree.costsOf !== labels.id) view.tree.take(head.values.map((_, k) => labels.self(k)));
    view.tree.costsOf = labels.id;
    view.tree.arrange(shownColumns(), state.order === "name", nameOf);
    colours.arrange(view.tree);
    if (state.order === "sandwich" && state.centre < 0) state.centre = state.chosen >= 0 ? state.chosen : table.order[0] ?? (nRows ? 0 : -1);
    flame.show(state.order === "time" ? timeBoxes()
      : state.order === "inverted" || (state.order === "sandwich" && state.centre >= 0)
      ? new GroupBoxes(view.tree, state.order === "inverted" ? -1 : state.centre) : new TreeBoxes(view.tree));
    sumRange();
    drawGraph();
    sayBox(null);
    drawSummary();
  };

  // ---- the call graph

  const sidesOf = costs => [state.event.old, state.event.new].map(k => costs[k] || 0);
  const changeOf = costs => (([before, after]) => (after - before) / (Math.abs(base()) || 1))(sidesOf(costs));
  const costText = costs => {
    if (!head.compared) return shareText(costs[state.event.old] || 0, wholeShown());
    const [before, after] = sidesOf(costs), [was, is, change] = pair([before, after, after - before], unit());
    return `${was} → ${is}, ${signed(after - before, change)} (${signed(after - before, percent(after - before, base()))} of the total)`;
  };
  const graph = new CallGraph({
    rows: nRows, columns: () => shownColumns(), short: labelOf, chosen: () => state.chosen, choose: fn => choose(fn, "graph"),
    base: () => wholeShown(),
    figures: fn => Object.fromEntries([["self", "row self"], ["all", "row inclusive"]]
      .map(([key, name]) => [key, head.values.map((_, k) => shownColumns().includes(k) ? rowFigure(name, k, fn) : 0)])),
    arcs: () => arcsOfGraph(),
    shares({self, all}) {
      const share = costs => head.compared ? sidesOf(costs).map(cost => percent(cost, wholeShown())).join(" → ") : percent(costs[state.event.old], wholeShown());
      return head.compared || share(self) === share(all) ? share(all) : `${share(self)} of ${share(all)}`;
    },
    colour: (fn, costs) => colours.kind === "change" && !state.matches ? colours.changed(changeOf(costs)) : colours.of({fn}),
    arcColour: costs => colours.kind === "change" && Math.abs(changeOf(costs)) >= 0.001 ? colours.changed(changeOf(costs))[0] : "currentColor",
    title: ({fn, self, all}) => `${nameOf(fn)}\nself ${costText(self)}\ninclusive ${costText(all)}`,
    arcTitle: (from, to, {costs, calls: counts}) => `${nameOf(from)} → ${nameOf(to)}\n${costText(costs)}` +
      (counts.some(count => count) ? `\n${head.compared ? `${counts.map(exact).join(" → ")} calls` : plural(counts[0], "call")}` : ""),
  });
  // The total of what the table shows.
  const wholeShown = () => {
    if (!ofThread() || state.ranged) return base();
    const totals = shownColumns().map(k => Math.abs(view.tree.total[k][0]));
    return Math.max(0, ...totals);
  };
  // Those of both lists, which have the most expensive ones of each function.
  const arcsOfGraph = () => {
    const list = listOfCalls(), found = new Map(), add = (from, to, arc) => found.set(`${from} ${to}`, {from, to, costs: arc.costs, calls: arc.calls});
    for (let fn = 0; fn < nRows; fn++) {
      for (const arc of list(fn, 0)) add(arc.other, fn, arc);
      for (const arc of list(fn, 1)) add(fn, arc.other, arc);
    }
    // stacks: what calls of a function to itself cost is in the contexts alone
    if (!ofThread() && !head.estimated)
      for (const arc of calls.ofItself(view.tree, countedColumns)) if (found.has(`${arc.from} ${arc.to}`)) add(arc.from, arc.to, arc);
    return [...found.values()];
  };
  const drawGraph = () => {
    const isShown = state.order === "graph";
    byId("callgraph").hidden = !isShown;
    byId("flame").hidden = isShown;
    if (!isShown) return;
    graph.arrange();
    graph.draw();
    drawLegend(graph.nodes.map(({fn}) => ({fn, id: 1})));
  };
  const drawLegend = drawn => {
    byId("legend").replaceChildren(...colours.legend(drawn).map(([colour, text]) => {
      const sample = element("i", {});
      sample.style.background = colour;
      return element("span", {}, sample, text);
    }));
  };
  const shareText = (value, whole) => `${figure(value, unit())} (${percent(value, whole)})`;
  const hint = () => {
    if (!view.tree.weight[0]) return `Nothing to show${!events.length ? "" : partTitle() ? `: no cost in ${partTitle()}` : ": all values are 0"}.`;
    const width = head.compared ? "its width is the larger of its old and new" : "its width is its";
    if (state.ranged) {
      const [from, to] = flame.range.map(share => beginText(share * head.time.length));
      return `${from} to ${to}: ${timeText((flame.range[1] - flame.range[0]) * head.time.length)} with ${plural(state.ranged.n, "call")}, ` +
        `${figure(state.ranged.sum, "ns")} in all threads shown${labels.isChosen ? `, ${labels.title()}` : ""}. The table covers this range; Esc clears it.`;
    }
    if (state.order === "graph") return `Each box is a function below its callers with its ${head.compared ? "old and new inclusive" : "self and inclusive"} ` +
      `cost; arcs are as thick as the cost of the calls. The ${exact(graph.nodes.length)} most expensive functions and calls above ${percent(LEAST_SHARE, 1)}` +
      `${(state.thread >= 0 || labels.isChosen) && !ofThread() ? ", of all threads" : ""}. Click a box for its callers and callees; Ctrl+wheel or + and - zoom.`;
    if (state.order === "time") return "Each box is a call. Drag to select a time range, click to zoom; Ctrl+wheel or w and s zoom, " +
      "Shift+wheel or a and d pan. Click a thread's name to collapse it, c for all.";
    if (state.order === "inverted") return `Each box of the first row is a function; ${width} self cost. ` +
      "Its callers follow, each with its part of that cost. Click to zoom.";
    if (state.order === "sandwich") return `${labelOf(state.centre)}: its callers above, its callees below, each with its part of this ` +
      "function's inclusive cost. Click a box to zoom, a row of the table to select another function.";
    if (isInclusiveKnown()) return `Each box is a function below its callers; ${width} inclusive cost. Click to zoom.`;
    return "Each box is a function; its width is its self cost, because the profile has no calls. Click to zoom.";
  };
  // What a group's cost is a part of.
  const partOf = ({id}) => {
    const {boxes} = flame;
    let group = boxes.groups[id];
    while (boxes.isInverted && group.row > 1) group = group.above;
    return boxes.isInverted ? group.row === 1 && group.id !== id ? ` of the self cost of ${labelOf(group.fn)}` : " self cost"
      : id ? ` with ${labelOf(state.centre)}` : "";
  };
  const sayBox = box => {
    const says = byId("hover");
    if (!box) {
      says.replaceChildren(element("span", {class: "where"}, hint()));
      return;
    }
    const {boxes} = flame, timed = state.order === "time", {id, fn, many} = box;
    const sum = figures => sumOf(box, figures), grouped = boxes instanceof GroupBoxes;
    const parts = [element("strong", {}, many ? `${exact(many.length)} ${timed ? "calls" : grouped ? "contexts" : "boxes"} narrower than a pixel` : view.name(fn, id)), " "];
    if (timed && many) parts.push(`${timeText(sum(boxes.duration))} together; the first begins at ${beginText(boxes.begin[many[0]])}. Click to zoom.`);
    else if (timed) parts.push(`${timeText(boxes.duration[id])}, begins at ${beginText(boxes.begin[id])}`);
    else if (head.compared) {
      const [before, after] = [state.event.old, state.event.new].map(k => k < 0 ? 0 : boxes.cost(box, k));
      const [was, is, change] = pair([before, after, after - before], unit());
      parts.push(`${was} → ${is}, ${signed(after - before, change)} ` +
        `(${signed(after - before, percent(after - before, base()))} of the total)`);
    } else if (grouped) {
      const k = state.event.old, cost = k < 0 ? 0 : boxes.cost(box, k);
      parts.push(`${figure(cost, unit())} (${percent(cost, view.tree.total[k]?.[0])})${many ? "" : partOf(box)}`);
    } else {
      const k = state.event.old;
      const [all, own] = k < 0 ? [0, 0] : [sum(view.tree.total[k]), sum(view.tree.self[k])];
      const [allText, ownText] = pair([all, own], unit()), whole = view.tree.total[k]?.[0];
      parts.push((isInclusiveKnown() ? `${allText} (${percent(all, whole)}), ` : "") +
        `self ${ownText} (${percent(own, whole)})` +
        (partTitle() && ` of ${partTitle()}`));
    }
    if (many && !timed) parts.push(" together. Click to zoom.");
    if (fn !== NONE && place(fn)) parts.push(" ", element("span", {class: "where"}, place(fn)));
    says.replaceChildren(...parts);
  };

  // ---- the table

  const rowName = (cell, i) => {
    cell.append(labelOf(i), cycles[i] && !nameOf(i).startsWith("<cycle") ? " ↻" : "", " ",
      element("span", {class: "in"}, [texts[filesOf[i]], texts[objects[i]]].filter(Boolean)
        .map(path => path.slice(path.lastIndexOf("/") + 1)).join(" · ")));
    cell.title = `${nameOf(i)}\n${place(i)}`;
  };
  // as in page.css: narrow: two figures fit next to a name; stacked: callers and callees are below the table
  const narrow = matchMedia("(max-width: 760px)"), stacked = matchMedia("(max-width: 1080px)"), roomy = matchMedia("(min-width: 1700px)");
  const tight = matchMedia("(min-width: 1081px) and (max-width: 1240px)");  // beside callers and callees
  const tableColumns = () => {
    const {old, new: next} = state.event;
    const largestOf = name => shownColumns().flatMap(k => [...rowFigures(name, k)].map(Math.abs).sort((a, b) => b - a).slice(0, 20));
    const scales = columns => columns.map(largest => scaleOf(Math.max(0, ...largest), unit(), largest, {beside: Math.max(0, ...columns.flat())}));
    const number = (text, width, value, scale, kind) => ({
      title: text + (scale && scale.unit ? ` ${scale.unit}` : ""), width, value, kind, write: i => scale.write(value(i)),
    });
    const [own, all] = scales([largestOf("row self"), largestOf("row inclusive")]);  // fit the largest rows, which are visible first
    const self = k => i => rowFigure("row self", k, i), inclusive = k => i => rowFigure("row inclusive", k, i);
    const name = {title: "Function", width: 0, value: nameOf, fill: rowName};
    if (head.compared) {
      const delta = of => i => of(next)(i) - of(old)(i);
      const kind = value => i => value(i) > 0 ? "more" : value(i) < 0 ? "less" : "";
      const plus = scale => ({...scale, write: value => signed(value, scale.write(value))});
      const wide = narrow.matches ? 100 : 118;  // for "new self MiB"
      const change = (of, scale, what) => {
        const value = delta(of), before = of(old);
        const share = i => before(i) ? value(i) / Math.abs(before(i)) : value(i) ? Infinity : 0;
        return [
          {...number(`Δ ${what}`, wide, value, plus(scale), kind(value)), key: i => Math.abs(value(i))},
          {title: "Δ %", width: 74, value: share, key: i => Math.abs(share(i)), kind: kind(value),
            write: i => before(i) ? signed(value(i), percent(value(i), Math.abs(before(i))).replace(" %", "")) : value(i) ? "new" : "0.0"},
          number(`old ${what}`, wide, before, scale), number(`new ${what}`, wide, of(next), scale),
        ];
      };
      const changes = [change(self, own, "self"), ...isInclusiveKnown() ? [change(inclusive, all, "incl.")] : []];
      const shown = narrow.matches ? [1, 1] : roomy.matches ? [4, 4] : tight.matches ? [3, 2] : [4, 2];
      return [...changes.flatMap((columns, at) => columns.slice(0, shown[at])), name];
    }
    const whole = state.ranged ? state.ranged.sum : ofThread() && old >= 0 ? view.tree.total[old][0] : total();
    const share = (text, value) => ({title: text, width: 80, value, write: i => percent(value(i), whole).replace(" %", "")});
    if (byId("figures").value === "calls") {
      const figure = name => i => column(`row ${name}`)[i];
      const times = [["median", "median"], ["99 %", "p99"], ["max", "max"], ["90 %", "p90"], ["min", "min"]].slice(0, narrow.matches ? 2 : 5)
        .sort((a, b) => ["min", "median", "p90", "p99", "max"].indexOf(a[1]) - ["min", "median", "p90", "p99", "max"].indexOf(b[1]));
      return [...narrow.matches ? [] : [number("ended", 92, figure("ended"), scaleOf(1, ""))],
        ...times.map(([title, name]) => {
          const all = column(`row ${name}`), largest = all.reduce((a, b) => Math.max(a, b), 0);
          return number(title, 96, figure(name), scaleOf(largest, head.durations.unit, [...all], {lost: 0}));
        }), name];
    }
    const found = [
      number("self", 104, self(old), own), share("self %", self(old)),
      ...isInclusiveKnown() ? [number("incl.", 104, inclusive(old), all), share("incl. %", inclusive(old))] : [],
    ];
    const shares = found.filter((_, at) => at % 2 === 1);
    const calls = state.ranged ? i => state.ranged.calls[i] : ofThread() ? counted && self(counted.old) : has("row calls 0") && (i => columnOf("row calls", 0, i));
    if (calls) found.push(number("calls", 92, calls, scaleOf(1, "")));
    return [...narrow.matches ? shares : found, name];
  };
  const table = new Table(byId("table"), {choose: i => choose(i, "table")});
  const drawTable = () => {
    table.show(tableColumns(), nRows);
    sayCount();
  };
  const sayCount = () => {
    const all = Math.max(0, ...shownColumns().map(k => head.functions[k]));
    const isOfAll = byId("figures").value === "calls";
    const isCycle = i => cycles[i] && nameOf(i).startsWith("<cycle ");
    const nCycles = table.order.filter(isCycle).length, shown = table.order.length - nCycles;
    const rest = all > nRows - [...cycles.keys()].filter(isCycle).length ? ` of ${exact(all)}; the smallest do not fit this page` : "";
    byId("count").textContent = plural(shown, "function") + (nCycles ? ` and ${plural(nCycles, "cycle")}` : "") + rest +
      (isOfAll ? state.ranged || partTitle() ? ", of all threads and the whole time" : "" : state.ranged ? " in this range" : !partTitle() ? "" : ofThread() ? `, in contexts of ${partTitle()}` : ", of all threads");
  };

  for (const query of [narrow, tight, roomy]) query.addEventListener("change", drawTable);

  // ---- the selected function

  const sources = new Sources(data);
  const calls = new Calls(data);
  // by side: the value column of calls
  const countedColumns = [0, 1].map(side => counted ? [counted.old, counted.new][side] : -1);
  // Callers and callees follow the chosen thread and labels, as the table does.
  const listOfCalls = () => ofThread() && !state.ranged
    ? calls.inTree(view.tree, `${state.thread} ${labels.id}`, countedColumns) : (fn, callee) => calls.list(fn, callee);
  const choose = (fn, where) => {
    state.chosen = view.chosen = fn;
    if (where !== "table" && fn < nRows) table.mark(fn);
    if (where !== "flame") state.centre = fn;
    if (state.order === "sandwich" && where !== "flame") drawFlame();
    flame.draw();
    if (state.order === "graph") graph.draw();
    remember(true);
    drawDetails();
    const details = byId("details");
    if (where === "details") details.querySelector("h2").focus();  // the button that had the focus is gone
    else if (stacked.matches && where === "table") details.scrollIntoView({block: "nearest"});
  };
  const drawDetails = detailsPanel({
    data, state, sources, nameOf, labelOf, place, unit, base: () => wholeShown(), shareText, shownColumns, rowFigure, ofThread, partTitle, isInclusiveKnown,
    wholes: isPart => isPart ? view.tree.total.map(total => total[0]) : head.totals,
    calls: () => listOfCalls(), choose: (fn, where) => choose(fn, where),
    sandwich(fn) {
      state.centre = fn;
      show("sandwich");
    },
  });

  // ---- searching

  const search = () => {
    const wanted = pattern(byId("search").value);
    state.matches = null;
    byId("matches").textContent = "";
    if (wanted) {
      state.matches = Uint8Array.from(names, name => wanted.test(texts[name]) ? 1 : 0);
      let n = 0;
      for (const match of state.matches) n += match;
      const k = head.compared && state.event.new >= 0 ? state.event.new : state.event.old;
      const found = k < 0 ? 0 : view.tree.matched(state.matches, k);
      byId("matches").textContent =
        `${percent(found, k < 0 ? 0 : view.tree.total[k][0])} in ${plural(n, "matching function")}`;
    }
    flame.draw();
    if (state.order === "graph") graph.draw();
  };
  const filter = () => {
    const wanted = pattern(byId("filter").value);
    table.keep = i => {
      const isThere = shownColumns().some(k => rowFigure("row self", k, i) || rowFigure("row inclusive", k, i));
      if (!isThere && (ofThread() || !columnOf("row calls", 0, i))) return false;
      return !wanted || wanted.test(nameOf(i)) || wanted.test(place(i));
    };
    table.arrange();
    sayCount();
  };

  // ---- the controls

  const select = byId("value");
  select.parentElement.style.display = events.length ? "" : "none";
  select.replaceChildren(...events.map((event, at) => element("option", {value: at}, title(event))));
  const chooser = new LabelChooser({
    labels, columns: shownColumns, unit, thread: () => state.thread,
    setThread: t => { state.thread = threads.value = t; }, changed: () => drawAll(),
  });
  const drawAll = () => {
    drawFlame();
    chooser.draw();
    drawTable();
    filter();
    search();
    drawDetails();
    remember(true);
  };
  select.addEventListener("change", () => {
    state.event = events[select.value];
    flame.range = null;  // the sums of a range are times
    drawAll();
  });
  const threads = byId("thread");
  byId("thread-label").hidden = head.threads.length < 2;
  threads.replaceChildren(element("option", {value: -1}, `all ${exact(head.threads.length)}`),
    ...head.threads.map((name, t) => element("option", {value: t}, threadLabel(name))));
  threads.addEventListener("change", () => {
    state.thread = Number(threads.value);
    drawAll();
  });
  const figures = byId("figures");
  figures.hidden = !head.durations;
  figures.addEventListener("change", () => {
    drawTable();
    filter();
    remember(true);
  });
  const views = byId("order");
  if (head.time) views.append(element("option", {value: "time"}, "time order"));
  if (!isInclusiveKnown()) for (const view of [...views.options]) if (/^(inverted|sandwich|graph)$/.test(view.value)) view.remove();
  const show = order => {
    state.order = views.value = order;
    byId("flip").disabled = order === "time" || order === "graph";
    if (order === "time") turn(false);
    drawAll();
  };
  views.addEventListener("change", () => show(views.value));
  const turn = flipped => {
    flame.flipped = flipped;
    byId("flip").setAttribute("aria-pressed", flipped);
  };
  const flip = () => {
    turn(!flame.flipped);
    flame.draw();
    requestAnimationFrame(() => flame.scrollHome());
    remember(true);
  };
  byId("flip").addEventListener("click", flip);
  const kinds = byId("colours");
  const kindTitles = {name: "name", change: "change", package: "package", object: objectTitle(data), file: "file"};
  kinds.replaceChildren(...colours.kinds.map(kind => element("option", {value: kind}, kindTitles[kind])));
  kinds.parentElement.hidden = colours.kinds.length < 2;
  kinds.addEventListener("change", () => {
    colours.kind = kinds.value;
    colours.arrange(view.tree);
    flame.draw();
    drawGraph();
    remember(true);
  });
  byId("reset").addEventListener("click", () => state.order === "graph" ? graph.fit() : flame.reset());
  for (const [id, apply] of [["search", search], ["filter", filter]])
    byId(id).addEventListener("input", () => {
      apply();
      remember(false);
    });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = to => {
    root.dataset.theme = to;
    flame.draw();
    if (graph.nodes) drawGraph();
  };
  theme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => theme(isDark() ? "light" : "dark"));
  document.addEventListener("keydown", event => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      if (typing && event.target.value && event.target.tagName === "INPUT") {
        event.target.value = "";
        event.target.dispatchEvent(new Event("input"));
      } else if (typing) event.target.blur();
      else if (state.ranged) setRange(null);
      else if (state.order === "graph") graph.fit();
      else flame.reset();
    } else if (!typing && !event.ctrlKey && !event.altKey && !event.metaKey) {
      const action = {
        "/": () => byId("search").focus(), t: () => byId("filter").focus(), g: () => byId(state.order === "graph" ? "callgraph" : "flame").focus(),
        f: () => { if (!byId("flip").disabled) flip(); },
      }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    }
  });

  // ---- the address

  const first = {event: state.event, kind: colours.kind};
  const functionText = fn => fn < 0 ? "" : `${fn}:${nameOf(fn)}`;
  const functionOf = text => {
    const [, at, name] = /^(\d+):(.*)$/s.exec(text || "") || [];
    if (name === undefined) return -1;
    return at < names.length && nameOf(at) === name ? Number(at) : Array.from(names, (_, fn) => nameOf(fn)).indexOf(name);
  };
  const stateText = () => {
    const isZoomed = flame.from > 0 || flame.to < 1;
    const parts = {
      view: state.order === "heavy" ? "" : state.order, value: state.event === first.event ? "" : state.event.name,
      thread: threadName() ?? "", colours: colours.kind === first.kind ? "" : colours.kind, flip: flame.flipped ? "1" : "",
      zoom: isZoomed ? `${flame.from},${flame.to}` : "", chosen: functionText(state.chosen),
      figures: figures.value === "costs" ? "" : figures.value,
      range: state.ranged ? flame.range.join() : "",
      centre: state.order === "sandwich" ? functionText(state.centre) : "",
      search: byId("search").value, filter: byId("filter").value,
    };
    const all = [...Object.entries(parts), ["by", chooser.key?.name], ...labels.address().map(text => ["label", text]),
      ...[...folded].sort().map(name => ["folded", name])];
    return new URLSearchParams(all.filter(([, text]) => text)).toString();
  };
  const restore = given => {
    const option = (list, value, other) => [...list.options].some(o => o.value === value) ? value : other;
    state.event = events.find(event => event.name === given.get("value")) || first.event;
    state.thread = head.threads.length < 2 ? -1 : head.threads.indexOf(given.get("thread"));
    state.order = option(views, given.get("view"), "heavy");
    colours.kind = option(kinds, given.get("colours"), first.kind);
    state.chosen = view.chosen = functionOf(given.get("chosen"));
    state.centre = functionOf(given.get("centre"));
    figures.value = head.durations && given.get("figures") === "calls" ? "calls" : "costs";
    turn(given.has("flip") && state.order !== "time");
    byId("flip").disabled = state.order === "time" || state.order === "graph";
    [select.value, threads.value, views.value, kinds.value] = [events.indexOf(state.event), state.thread, state.order, colours.kind];
    for (const id of ["search", "filter"]) byId(id).value = given.get(id) || "";
    chooser.restore(given.get("by"), given.getAll("label"));
    folded.clear();
    for (const name of given.getAll("folded")) folded.add(name);
    const shares = name => {
      const [from, to] = (given.get(name) || "").split(",").map(Number);
      return from >= 0 && from < to && to <= 1 ? [from, to] : null;
    };
    flame.range = shares("range");
    drawAll();
    table.mark(state.chosen);
    [flame.from, flame.to] = shares("zoom") || [0, 1];
  };
  const address = new Address(stateText, restore);
  const remember = isStep => address.remember(isStep);

  const {about, drawSummary} = aboutPage({head, state, events, unitOf, shownColumns, timeText, labels, sources});
  about();
  address.restore();
  root.dataset.ready = "yes";
  // for tests
  window.fastprof = {data, state, flame, table, view, graph};
};
begin().catch(error => {
  byId("summary").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
  byId("summary").className = "problem";
  document.documentElement.dataset.ready = "failed";
});
