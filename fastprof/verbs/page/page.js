// The page: its state, and what it draws from it.
const begin = async () => {
  const data = await readData();
  addFunctions(data);
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
  const isPlain = unit => unit === "count" || UNITS.has(unit.toLowerCase());  // figures have it
  const isOnlyName = event => events.filter(({name}) => name === event.name).length === 1;
  const title = event => event.name + (!event.unit || event.unit === event.name || (isPlain(event.unit) && isOnlyName(event)) ? "" : ` (${event.unit})`);
  const unitOf = event => event.unit || (UNITS.has(event.name.toLowerCase()) ? event.name : "");
  const state = {
    event: events.find(event => event.index === head.shown) || events[0] || {name: "nothing", unit: "", old: -1, new: -1},
    thread: -1, order: "heavy", isByName: false, matches: null, chosen: -1, centre: -1, ranged: null,
  };
  const unit = () => unitOf(state.event);
  const columnOf = (name, k, i) => k < 0 ? 0 : column(`${name} ${k}`)[i] || 0;
  // Figures of the table: with a selected thread they come from its contexts, unless those are estimates.
  const labels = new Labels(data);
  const transforms = new Transforms(data);
  const rowCount = () => transforms.isActive ? names.length : nRows;  // transforms may give functions costs that the table lacks
  const ofThread = () => state.ranged || transforms.isActive || ((state.thread >= 0 || labels.isChosen) && !head.estimated);
  const contextsId = () => `${state.thread} ${labels.id}\n${transforms.id}`;
  const partTitle = () => [state.thread >= 0 && "this thread", labels.title()].filter(Boolean).join(", ");
  const rowFigures = (name, k) => state.ranged ? state.ranged[name] : ofThread() ? view.tree.figuresOf(k, names.length)[name] : column(`${name} ${k}`);
  const rowFigure = (name, k, i) => k < 0 ? 0 : i >= names.length ? rowGroups.figure(name, k, i) : rowFigures(name, k)[i] || 0;
  // Cachegrind's files have no calls.
  const isInclusiveKnown = () => ofThread() || shownColumns().every(k => has(`row inclusive ${k}`));
  const counted = events.find(event => event.name.toLowerCase() === "calls");
  const shownColumns = () => state.event.columns ??= [state.event.old, state.event.new].filter(k => k >= 0);
  const total = () => state.event.old < 0 ? 0 : head.totals[state.event.old];
  const totalNew = () => state.event.new < 0 ? 0 : head.totals[state.event.new];
  const base = () => head.compared ? Math.max(Math.abs(total()), Math.abs(totalNew())) : total();

  const nameOf = fn => fn === NONE ? "[pruned]" : fn >= names.length ? rowGroups.title(fn) : texts[names[fn]] || "???";
  const isCycle = fn => cycles[fn] && nameOf(fn).startsWith("<cycle ");
  const nAllCycles = cycles.reduce((n, _, fn) => n + (isCycle(fn) ? 1 : 0), 0);
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
  const process = /^(?:process \d+, |[^:]+: )(?=.)/.exec(head.threads[0] || "")?.[0];
  const isOne = process && head.threads.every(name => name.startsWith(process) || name === "[pruned]");
  const threadLabel = name => isOne ? name.replace(process, "") : name;
  const isThreadShown = () => {
    const {threads} = labels.kept(), names = new Set(head.threads.filter((_, t) => threads[t] && (state.thread < 0 || t === state.thread)));
    return name => names.has(name) || (state.thread < 0 && !labels.isChosen);  // contexts of a thread may be pruned
  };
  const threadName = () => state.thread < 0 ? null : head.threads[state.thread];

  // ---- colours

  let themeShown = "light";
  const isDark = () => themeShown === "dark";
  const colours = new Colours({
    data, nameOf,
    theme: () => themeShown,
    matches: () => state.matches,
    isMatch: box => box.areFunctions ? box.many.some(fn => state.matches[fn]) : flame.boxes.matches(box, state.matches),
    own: box => box.own ?? flame.boxes.own(box),
    functions: () => flame.boxes.tree ? flame.boxes.tree.fn : flame.boxes.fn,
    change(box) {  // as a share of the zoomed box
      const [before, after] = [state.event.old, state.event.new].map(k => k < 0 ? 0 : flame.boxes.cost(box, k));
      return (after - before) / (base() * Math.max(flame.to - flame.from, box.width) || 1);
    },
  });
  const view = {
    tree: null, matches: null, chosen: -1,
    name: (fn, id) => fn === NONE && id === 0 ? labels.title() || "everything" : nameOf(fn),
    label: (fn, id) => fn === NONE ? view.name(fn, id) : labelOf(fn),
    marks: (from, to, most) => times.marks(from, to, most),
    colour: box => colours.of(box),
    coloured: () => [colours.version, colours.kind, root.dataset.theme, byId("search").value, flame.flipped].join(),
  };

  // ---- flame graphs

  let kindChosen = "", isKindGiven = false;  // colours: by default, and in the address
  const timeline = head.time || head.samples ? callsOf(data) : null;
  const times = timeTexts(head, () => [flame.from, flame.to]);
  const folded = new Set();  // names of threads
  let firstFolded = new Set(), areFoldsGiven = false;  // those at first, and whether the address has others
  const timeBoxes = () => new (head.samples ? SampleBoxes : TimeBoxes)(head.time, timeline, isThreadShown(), folded, fn => labels.isFunctionKept(fn), threadLabel, flame.holder.clientHeight || innerHeight / 2);
  // With a time range the table sums the time of the calls within it that are in this page, or the costs of the samples.
  const timeEvent = events.find(event => head.samples ? event.index === head.samples.event : event.name.toLowerCase() === "time");
  const setRange = range => {
    flame.range = range;
    if (range && timeEvent) state.event = timeEvent;
    select.value = events.indexOf(state.event);
    sumRange();
    drawTable();
    trackTable.draw(state.order === "time");
    drawDetails();
    flame.draw();
    answer.draw();
    remember(true);
  };
  const sumRange = () => {
    state.ranged = null;
    if (!flame.range || !flame.boxes.isTimed || state.event !== timeEvent) return;
    const {own, all, calls, sum, n} = flame.boxes.within(flame.range, rowCount()), perTick = head.samples ? 1 : times.perTick;
    const units = figures => figures.map(ticks => ticks * perTick);
    state.ranged = {"row self": units(own), "row inclusive": units(all), calls, sum: sum * perTick, n};
  };
  const flame = new Flame(view, {
    hover: (box, at, isNew) => tip.show(box, at, isNew),
    focus: box => tip.show(box, null, true),
    choose: fn => { if (fn !== NONE) choose(fn, "flame"); },
    painted: () => drawLegend(),
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
  const timeViews = new Map();  // boxes of the time order, by what they show
  const boxesOf = order => {
    if (order === "time") {
      if (!areFoldsGiven) {
        areFoldsGiven = true;
        firstFolded = foldsToFit(head.time, timeline, flame.holder.clientHeight || innerHeight / 2);
        for (const name of firstFolded) folded.add(name);
      }
      const key = ["time", state.thread, labels.id, ...folded].join("\n");
      if (!timeViews.has(key)) {
        timeViews.clear();
        timeViews.set(key, timeBoxes());
      }
      return timeViews.get(key);
    }
    const centre = order === "inverted" ? -1 : order === "sandwich" && state.centre >= 0 ? state.centre : NONE;
    const {views} = view.tree;  // until its costs change
    if (!views.has(centre)) views.set(centre, centre === NONE ? new TreeBoxes(view.tree) : new GroupBoxes(view.tree, centre));
    return views.get(centre);
  };
  const drawFlame = () => {
    view.tree = transforms.tree(state.thread);
    if (view.tree.costsOf !== labels.id) view.tree.take(head.values.length, k => labels.self(k), labels.id);
    const arranged = [labels.id, state.isByName, ...shownColumns()].join();
    if (view.tree.arrangedBy !== arranged) view.tree.arrange(shownColumns(), state.isByName, nameOf);
    view.tree.arrangedBy = arranged;
    if (!kindChosen) {
      kindChosen = first.kind = colours.bestKind(view.tree);
      if (!isKindGiven) colours.kind = kinds.value = first.kind;
    }
    colours.arrange(view.tree, `${state.thread} ${labels.id} ${shownColumns()} ${transforms.roots()}`);
    rowGroups.forget();
    if (state.order === "sandwich" && state.centre < 0) state.centre = state.chosen >= 0 ? state.chosen : answer.largest(1)[0] ?? -1;
    flame.show(boxesOf(state.order));
    sumRange();
    drawGraph();
    tip.hide();
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
    rows: rowCount, columns: () => shownColumns(), short: labelOf, chosen: () => state.chosen, choose: fn => choose(fn, "graph"),
    base: () => wholeShown(), groupOf: fn => texts[objects[fn]] || packageOf(nameOf(fn)),
    figures: fn => Object.fromEntries([["self", "row self"], ["all", "row inclusive"]]
      .map(([key, name]) => [key, head.values.map((_, k) => shownColumns().includes(k) ? rowFigure(name, k, fn) : 0)])),
    arcs: fns => arcsOfGraph(fns),
    shares({self, all}) {
      const share = costs => head.compared ? sidesOf(costs).map(cost => percent(cost, wholeShown())).join(" → ") : percent(costs[state.event.old], wholeShown());
      return head.compared || share(self) === share(all) ? share(all) : `${share(self)} of ${share(all)}`;
    },
    colour: (fn, {self, all}) => colours.kind === "change" && !state.matches ? colours.changed(changeOf(all))
      : colours.of({fn, own: Math.abs(self[state.event.old] || 0) / (Math.abs(all[state.event.old]) || 1)}),
    arcColour: costs => colours.kind === "change" && Math.abs(changeOf(costs)) >= 0.001 ? colours.changed(changeOf(costs))[0] : "currentColor",
    title: ({fn, self, all}) => `${nameOf(fn)}\nself ${costText(self)}\ninclusive ${costText(all)}`,
    arcLabel: ({costs, calls: counts}) => (head.compared ? signed(changeOf(costs), percent(changeOf(costs), 1)) : percent(costs[state.event.old], wholeShown())) +
      (!head.compared && counts[0] ? `, ${figure(counts[0], "", COUNT_ALONE)}×` : ""),
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
  const arcsOfGraph = fns => {
    const list = listOfCalls(true), found = new Map();
    const add = (from, to, arc) => { if (fns.has(from) && fns.has(to)) found.set(`${from} ${to}`, {from, to, costs: arc.costs, calls: arc.calls}); };
    for (const fn of fns.keys()) {
      for (const arc of list(fn, 0)) add(arc.other, fn, arc);
      for (const arc of list(fn, 1)) add(fn, arc.other, arc);
    }
    // stacks: what calls of a function to itself cost is in the contexts alone
    if (!ofThread() && !head.estimated)
      for (const arc of calls.ofItself(view.tree, shownColumns(), countedColumns)) if (found.has(`${arc.from} ${arc.to}`)) add(arc.from, arc.to, arc);
    return [...found.values()];
  };
  const treemap = new Treemap({
    tree: () => view.tree, levels: [fn => texts[objects[fn]], fn => texts[filesOf[fn]]], name: labelOf, colour: box => colours.of(box), chosen: () => state.chosen,
    hover: (box, at, isNew) => tip.show(box, at, isNew), choose: fn => choose(fn, "treemap"),
  });
  const drawGraph = () => {
    const isGraph = state.order === "graph", isMap = state.order === "treemap";
    trackTable.draw(state.order === "time" || (state.order === "table" && innerWidth <= PHONE));
    byId("callgraph").hidden = !isGraph;
    byId("treemap").hidden = !isMap;
    byId("flame").hidden = byId("minimap").hidden = isGraph || isMap;
    byId("series").hidden = !head.series || isGraph;
    if (!isGraph && !isMap) return;
    (isGraph ? graph : treemap).arrange();
    (isGraph ? graph : treemap).draw();
    drawLegend();
  };
  // The picture that is shown, again: with another selection, search or colours.
  const redraw = () => {
    flame.draw();
    if (state.order === "graph") graph.draw();
    if (state.order === "treemap") treemap.draw();
  };
  let legendShown = "";
  const drawLegend = () => {
    const found = [...flame.boxes?.lanes && state.order === "time" ? flame.boxes.lanes.legend() : [], ...colours.legend()];
    const room = innerWidth <= PHONE ? 1.6 * innerWidth : flame.holder.parentElement.clientWidth;
    let most = 32;  // characters of a name; if few do not suffice, the smallest groups have no name
    const needed = () => found.reduce((sum, [colour, text]) => sum + (colour ? 38 + 6.5 * Math.min(text.length, most) : 14 + 7 * text.length), 10);
    while (most > 12 && needed() > room) most--;
    const last = () => found.findLastIndex(([colour, text]) => colour && text !== "others");
    while (found.length > 4 && needed() > room) found.splice(last(), 1);
    const shown = JSON.stringify([found, most]);
    if (shown === legendShown) return;
    legendShown = shown;
    byId("legend").hidden = !found.length;
    byId("legend").replaceChildren(...found.map(([colour, text, kind = ""]) => {
      const sample = element("i", {});
      sample.style.background = colour;
      return element("span", {class: kind, title: text}, ...colour ? [sample, middleOf(text, most)] : [text]);
    }));
  };
  const shareText = (value, whole) => `${figure(value, unit())} (${percent(value, whole)})`;

  // ---- the text at the pointer, and the line above

  // What a group's cost is a part of.
  const partOf = ({id, many}) => {
    if (many) return "";
    const {boxes} = flame;
    let group = boxes.groups[id];
    while (boxes.isInverted && group.row > 1) group = group.above;
    return boxes.isInverted ? group.row === 1 && group.id !== id ? `of the self cost of ${labelOf(group.fn)}` : "self cost"
      : id ? `with ${labelOf(state.centre)}` : "";
  };
  const known = {
    rowGroups: () => rowGroups,
    head, state, flame, view, labels, graph, events, unit, base, total, totalNew, isInclusiveKnown, partTitle, ofThread, place, labelOf, nameOf, counted, rowFigure,
    rowFigures, shownColumns, isCycle, partOf, column, has, rows: rowCount, transforms, timeText: times.text, beginText: times.begin,
    whole: () => state.ranged ? state.ranged.sum : wholeShown(),
    callers: fn => listOfCalls()(fn, 0).filter(arc => arc.other !== fn).sort((a, b) => (b.costs[state.event.old] || 0) - (a.costs[state.event.old] || 0)).map(arc => arc.other),
    callsOf: fn => ofThread() ? 0 : columnOf("row calls", 0, fn),
    choose: fn => choose(fn, "answer"),
    enlargeGraph() {
      graph.isWhole = !graph.isWhole;
      drawGraph();
      answer.draw();
      remember(true);
    },
    rowName(cell, i) {
      if (rowGroups.kind && rowGroups.isGroup(i)) {
        cell.append(`${rowGroups.unfolded.has(i) ? "▾" : "▸"} ${rowGroups.title(i)} (${exact(rowGroups.count(i))})`);
        cell.title = rowGroups.title(i);
        return;
      }
      if (i >= names.length) i = rowGroups.functionOf(i);
      cell.append(element("span", {class: "own"}, table.fitting(labelOf(i)) + (cycles[i] && !nameOf(i).startsWith("<cycle") ? " ↻" : "")), " ",
        element("span", {class: "in"}, [texts[filesOf[i]], texts[objects[i]]].filter(Boolean)
          .map(path => path.slice(path.lastIndexOf("/") + 1)).join(" · ")));
      cell.title = `${nameOf(i)}\n${place(i)}`;
    },
  };
  const tip = tooltip(known), answer = answerLine(known);
  const trackTable = new TrackTable({flame, head, tracks: timeline?.tracks, timeText: times.text, show: found => flame.point(found), unfold: names => unfold(names)});
  const unfold = names => {
    if (state.order !== "time") show("time");
    if (!names.some(name => folded.has(name))) return;
    for (const name of names) folded.delete(name);
    flame.show(timeBoxes(), true);
    remember(true);
  };

  // ---- the table

  const rowGroups = new RowGroups({
    labels, nameOf, columns: shownColumns, thread: () => state.thread, rows: rowCount, first: names.length, groupsOf: kind => colours.groups(kind), rowFigure, tree: () => view.tree, isExact: () => !state.ranged && !head.estimated && isInclusiveKnown(),
  });
  const table = new Table(byId("table"), {choose: i => choose(i, "table")});
  const columnsFor = functionColumns(known);
  const drawTable = () => {
    table.groups = rowGroups.kind && !(rowGroups.key && state.ranged) ? rowGroups : null;  // a range of times has no figures by thread
    table.keeper = keeper;
    table.show(columnsFor(byId("table").clientWidth || 400), rowCount());
    sayCount();
  };
  let tableWidth = 0;
  new ResizeObserver(([{contentRect: {width}}]) => {
    if (Math.abs(width - tableWidth) < 8 || !width || !view.tree) return;
    tableWidth = width;
    drawTable();
  }).observe(byId("table"));
  const sayCount = () => {
    const all = Math.max(0, ...shownColumns().map(k => head.functions[k]));
    const isOfAll = byId("figures").value === "calls";
    const nCycles = nAllCycles ? table.kept.filter(isCycle).length : 0, shown = table.kept.length - nCycles;
    const rest = !transforms.isActive && all > nRows - nAllCycles ? ` of ${exact(all)}; the smallest do not fit this page` : "";
    byId("count").textContent = plural(shown, "function") + (nCycles ? ` and ${plural(nCycles, "cycle")}` : "") + rest +
      (isOfAll ? state.ranged || partTitle() ? ", of all threads and the whole time" : "" : state.ranged ? " in this range" : !partTitle() ? "" : ofThread() ? `, in contexts of ${partTitle()}` : ", of all threads");
    if (transforms.isActive) byId("count").textContent += head.estimated ? ", transformed: an estimate" : ", transformed" + (head.cuts ? `; ${percent(head.cut[shownColumns()[0]] || 0, head.totals[shownColumns()[0]])} is in [pruned]` : "");
    byId("count").title = byId("count").textContent;
  };

  // ---- the selected function

  const sources = new Sources(data), assembly = new Assembly(data);
  const calls = new Calls(data);
  // by side: the value column of calls
  const countedColumns = [0, 1].map(side => counted ? [counted.old, counted.new][side] : -1);
  // Callers and callees follow the chosen thread and labels, as the table does.
  const listOfCalls = (isOfAll = false) => ofThread() && !state.ranged
    ? calls.inTree(view.tree, contextsId(), shownColumns(), countedColumns, isOfAll) : (fn, callee) => calls.list(fn, callee);
  const choose = (fn, where) => {
    state.chosen = view.chosen = fn;
    if (where !== "table" && fn < rowCount()) table.mark(fn);
    if (where !== "flame") {
      state.centre = fn;
      flame.findWidest(fn);
    }
    if (state.order === "sandwich" && where !== "flame") drawFlame();
    redraw();
    remember(true);
    drawDetails();
    if (where === "details") byId("details").querySelector("h2").focus();  // the button that had the focus is gone
    if (where === "table" && state.order === "table" && innerWidth <= PHONE) show("details");
  };
  const openSandwich = fn => {
    state.centre = fn;
    show("sandwich");
  };
  const selectedBox = selectionPanel({flame, state, view, unit, labelOf, nameOf, timeText: times.text, compared: head.compared});
  const selection = fn => isInclusiveKnown() ? selectedBox(fn) : [];  // without calls a box is a function
  const drawDetails = detailsPanel({
    data, state, sources, assembly, nameOf, labelOf, place, unit, base: () => wholeShown(), shareText, shownColumns, rowFigure, ofThread, partTitle, isInclusiveKnown, selection, transforms, rows: rowCount,
    transform: (fn, event) => menu.open(fn, event, event.target),
    wholeOf: (k, isPart) => isPart ? view.tree.total[k][0] : head.totals[k],
    calls: () => listOfCalls(), choose: (fn, where) => choose(fn, where),
    sandwich: fn => openSandwich(fn),
  });

  // ---- searching: the graph shows matches, the table has them alone

  const matchesOf = wanted => {
    const known = new Uint8Array(texts.length), isMatch = text => (known[text] ||= wanted.test(texts[text]) ? 1 : 2) === 1;
    return Uint8Array.from(names, (name, fn) => isMatch(name) || isMatch(filesOf[fn]) || isMatch(objects[fn]) ? 1 : 0);
  };
  const findMatches = () => {
    const wanted = pattern(byId("search").value);
    state.matches = null;
    byId("matches").textContent = "";
    if (wanted) {
      state.matches = matchesOf(wanted);
      let n = 0;
      const isShown = transforms.isActive ? new Uint8Array(names.length) : null;
      if (isShown) for (const fn of view.tree.fn) isShown[fn] = 1;
      for (let fn = 0; fn < (isShown ? names.length : data.functions); fn++) n += isShown && !isShown[fn] ? 0 : state.matches[fn];
      const k = head.compared && state.event.new >= 0 ? state.event.new : state.event.old;
      const found = k < 0 ? 0 : view.tree.matched(state.matches, k);
      byId("matches").textContent =
        `${percent(found, k < 0 ? 0 : view.tree.total[k][0])} in ${plural(n, "matching function")}`;
    }
    redraw();
  };
  const search = () => {
    findMatches();
    table.arrange();
    sayCount();
  };
  // Which rows the table has: those with figures, and only matching ones.
  const keeper = () => {
    const {matches} = state, figures = shownColumns().flatMap(k => [rowFigures("row self", k), rowFigures("row inclusive", k)]);
    const found = rowsWith(ofThread() ? figures : [...figures, column("row calls 0")], rowCount());
    return matches ? found.filter(i => matches[i]) : found;
  };

  // ---- the controls

  const select = byId("value");
  select.hidden = !events.length;
  select.replaceChildren(...events.map((event, at) => element("option", {value: at, title: event.unit}, title(event))));
  const chooser = new LabelChooser({
    labels, columns: shownColumns, unit, thread: () => state.thread, threadName: () => threadLabel(threadName()),
    setThread: t => { state.thread = threads.value = t; }, changed: () => drawAll(),
  });
  const menu = new TransformMenu({
    ...known, data, transforms, treemap, table: () => table, choose: (fn, where) => choose(fn, where), sandwich: fn => openSandwich(fn),
    changed() {
      rowGroups.choose(rowGroups.kind);
      state.chosen = state.centre = view.chosen = -1;
      drawAll();
    },
  });
  const drawAll = () => {
    drawFlame();
    chooser.draw();
    menu.draw();
    findMatches();
    chooseFirst();
    table.chosen = state.chosen;
    drawTable();
    drawRest();
  };
  const chooseFirst = () => { if (state.chosen < 0 || !names.length) state.chosen = view.chosen = answer.largest(1)[0] ?? -1; };
  const drawRest = () => {
    answer.draw();
    chooseFirst();
    if (state.chosen >= 0) {
      table.mark(state.chosen);
      flame.findWidest(state.chosen);
    }
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
    remember(true);
  });
  const views = {heavy: true, table: true, details: true, time: Boolean(head.time), inverted: isInclusiveKnown(), sandwich: isInclusiveKnown(), graph: isInclusiveKnown(), treemap: !head.compared && !isInclusiveKnown()};
  const shell = new Shell(view => views[view], {show: view => show(view), placed: () => {}});
  const firstView = shell.has("treemap") ? "treemap" : "heavy";
  const show = order => {
    state.order = order;
    shell.show(order);
    for (const button of document.querySelectorAll("#exports .picture")) button.disabled = order === "table" || order === "details";
    byId("flip").disabled = ["time", "graph", "treemap"].includes(order);
    if (order === "time") turn(false);
    const wasRanged = state.ranged;
    drawFlame();
    if (wasRanged || state.ranged) drawTable();
    drawRest();
  };
  byId("order").addEventListener("change", () => {
    state.isByName = byId("order").value === "name";
    drawAll();
  });
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
  byId("colours-label").hidden = colours.kinds.length < 2;
  kinds.addEventListener("change", () => {
    colours.kind = kinds.value;
    colours.arrange(view.tree);
    flame.draw();
    drawGraph();
    remember(true);
  });
  const group = byId("group"), groupTitles = new Map(["package", "object", "file"].filter(kind => colours.kinds.includes(kind)).map(kind => [kind, `by ${kindTitles[kind]}`]));
  if (!head.estimated) for (const {name, ofFunction, ofSets} of labels.keys) if (!ofFunction) groupTitles.set(`by ${name}`, ofSets ? `by label ${name}` : `by ${name}`);
  group.replaceChildren(element("option", {value: ""}, "one by one"), ...[...groupTitles].map(([kind, text]) => element("option", {value: kind}, text)));
  group.hidden = !groupTitles.size;
  group.addEventListener("change", () => {
    rowGroups.choose(group.value);
    drawTable();
    remember(true);
  });
  const zoomOut = () => state.order === "graph" ? graph.fit() : state.order === "treemap" ? treemap.reset() : flame.reset();
  byId("reset").addEventListener("click", () => zoomOut());
  byId("search").addEventListener("input", () => {
    search();
    remember(false);
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = to => {
    root.dataset.theme = themeShown = to;
    flame.draw();
    if (graph.nodes || (view.tree && state.order === "treemap")) drawGraph();
  };
  theme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => theme(isDark() ? "light" : "dark"));
  let themeBefore = "light";  // paper is white
  addEventListener("beforeprint", () => {
    themeBefore = themeShown;
    theme("light");
    flame.paint(true);  // the next frame is after the print
  });
  addEventListener("afterprint", () => theme(themeBefore));
  document.addEventListener("keydown", event => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      tip.hide();
      if (typing && event.target.value && event.target.tagName === "INPUT") {
        event.target.value = "";
        event.target.dispatchEvent(new Event("input"));
      } else if (typing) event.target.blur();
      else if (state.ranged) setRange(null);
      else zoomOut();
    } else if (!typing && !event.ctrlKey && !event.altKey && !event.metaKey) {
      if (menu.press(event.key)) return;
      const action = {
        "/": () => byId("search").focus(), t: () => byId("search").focus(), g: () => byId({graph: "callgraph", treemap: "treemap"}[state.order] || "flame").focus(),
        f: () => { if (!byId("flip").disabled) flip(); },
      }[event.key] || (shell.tabs[event.key - 1] && (() => shell.tabs[event.key - 1].click()));
      if (!action || (event.key === "0" && event.target.closest?.("#flame"))) return;
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
      view: state.order === firstView ? "" : state.order === "heavy" && state.isByName ? "name" : state.order, boxes: state.isByName && (state.order !== "heavy" || firstView === "heavy") ? "name" : "",
      value: state.event === first.event ? "" : state.event.name,
      thread: threadName() ?? "", colours: colours.kind === first.kind ? "" : colours.kind, flip: flame.flipped ? "1" : "",
      zoom: isZoomed ? `${flame.from},${flame.to}` : "", chosen: state.chosen === answer.largest(1)[0] ? "" : functionText(state.chosen),
      figures: figures.value === "costs" ? "" : figures.value, nodes: graph.isWhole ? "all" : "", rows: flame.isEnlarged ? "full" : "", group: rowGroups.kind,
      range: state.ranged ? flame.range.join() : "",
      centre: state.order === "sandwich" ? functionText(state.centre) : "",
      search: byId("search").value,
    };
    const all = [...Object.entries(parts), ["by", chooser.key?.name], ...labels.address().map(text => ["label", text]),
      ...areFoldsGiven && [...folded].sort().join("\n") !== [...firstFolded].sort().join("\n") ? [["folds", "1"], ...[...folded].sort().map(name => ["folded", name])] : [],
      ...transforms.address().map(text => ["do", text])];
    return new URLSearchParams(all.filter(([, text]) => text)).toString();
  };
  const restore = given => {
    state.event = events.find(event => event.name === given.get("value")) || first.event;
    state.thread = head.threads.length < 2 ? -1 : head.threads.indexOf(given.get("thread"));
    const wanted = given.get("view");
    transforms.restore(given.getAll("do"));
    state.isByName = wanted === "name" || given.get("boxes") === "name";
    state.order = shell.has(wanted) ? wanted : state.isByName ? "heavy" : firstView;
    if (state.order === "details" && innerWidth > PHONE) state.order = firstView;
    isKindGiven = colours.kinds.includes(given.get("colours"));
    colours.kind = isKindGiven ? given.get("colours") : first.kind;
    state.chosen = view.chosen = functionOf(given.get("chosen"));
    state.centre = functionOf(given.get("centre"));
    figures.value = head.durations && given.get("figures") === "calls" ? "calls" : "costs";
    rowGroups.choose(groupTitles.has(given.get("group")) ? given.get("group") : "");
    turn(given.has("flip") && state.order !== "time");
    byId("flip").disabled = ["time", "graph", "treemap"].includes(state.order);
    shell.show(state.order);
    [select.value, threads.value, byId("order").value, kinds.value, group.value] =
      [events.indexOf(state.event), state.thread, state.isByName ? "name" : "heavy", colours.kind, rowGroups.kind];
    byId("search").value = given.get("search") || given.get("filter") || "";  // once the table had a filter of its own
    chooser.restore(given.get("by"), given.getAll("label"));
    flame.isEnlarged = given.get("rows") === "full";
    graph.isWhole = given.get("nodes") === "all";
    folded.clear();
    areFoldsGiven = given.has("folds") || given.has("folded");
    for (const name of given.getAll("folded")) folded.add(name);
    const shares = name => {
      const [from, to] = (given.get(name) || "").split(",").map(Number);
      return from >= 0 && from < to && to <= 1 ? [from, to] : null;
    };
    flame.range = shares("range");
    drawAll();
    [flame.from, flame.to] = shares("zoom") || [0, 1];
  };
  const address = new Address(stateText, restore);
  const remember = isStep => address.remember(isStep);

  const exports = exporter({
    ...known, table, treemap, perTick: times.perTick, fileOf: fn => texts[filesOf[fn]] || "", lineOf: fn => lines[fn], objectOf: fn => texts[objects[fn]] || "",
    calls: fn => columnOf("row calls", 0, fn),
  });
  const {about, drawSummary} = aboutPage({data, head, state, events, unitOf, shownColumns, timeText: times.text, labels, sources, assembly});
  about();
  address.restore();
  root.dataset.ready = "yes";
  if (shownColumns().length === 1 && isInclusiveKnown()) prepare(view, shownColumns()[0], names.length, () => boxesOf("inverted"), boxes => flame.whole(flame.holder.clientWidth || 1, boxes));
  // for tests
  window.fastprof = {data, state, transforms, menu, flame, table, view, graph, treemap, colours, scaleOf, exports};
};
begin().catch(error => {
  byId("summary").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
  byId("summary").className = "problem";
  document.documentElement.dataset.ready = "failed";
});
