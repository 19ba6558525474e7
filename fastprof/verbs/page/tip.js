// What a box costs: the text at the pointer, and the line above the view: the answer, or what the view shows.
//
// page: {head, state, flame, view, labels, unit, base, timeText, beginText, isInclusiveKnown, partTitle, ofThread, place, labelOf,
// nameOf, graph, counted: the event of calls, rowFigure, shownColumns, rows, cycles, callers(fn), choose(fn)}
const tooltip = page => {
  const {head, state, view, place, labelOf, unit} = page, holder = byId("hover");

  // Cost, share of the total and of its caller, self cost, calls; then the name and its place.
  const tipOf = box => {
    const {boxes} = page.flame, {id, fn, many} = box, k = state.event.old, isTimed = boxes.isTimed, grouped = boxes instanceof GroupBoxes;
    const first = [], second = [];
    const add = (list, ...texts) => list.push(...texts.filter(Boolean));
    const shareOf = (cost, whole, of) => whole ? `${percent(cost, whole)} of ${of}` : "";
    const above = many || id < 0 ? -1 : boxes.parent(id);
    const aboveName = above >= 0 ? labelOf(boxes.fnOf(above)) : "";
    if (isTimed) {
      const sum = sumOf(box, boxes.duration);
      add(first, page.timeText(sum), shareOf(sum, head.time.length, "the whole time"), aboveName && shareOf(sum, boxes.duration[above], aboveName));
      if (!many) add(second, `self ${page.timeText(sum * boxes.own(box))}`, `begins at ${page.beginText(boxes.begin[id])}`);
      else add(second, `the first begins at ${page.beginText(boxes.begin[many[0]])}`);
    } else if (head.compared) {
      const [before, after] = [state.event.old, state.event.new].map(k => k < 0 ? 0 : boxes.cost(box, k));
      const [was, is, change] = pair([before, after, after - before], unit());
      add(first, `${was} → ${is}`, signed(after - before, change), `${signed(after - before, percent(after - before, page.base()))} of the total`);
    } else if (k >= 0) {
      const cost = boxes.cost(box, k), whole = view.tree.total[k][0];
      add(first, figure(cost, unit()), shareOf(cost, whole, page.partTitle() || "the total"),
        grouped ? page.partOf(box) : above > 0 && shareOf(cost, boxes.cost({id: above}, k), aboveName));
      if (!grouped && page.isInclusiveKnown()) {
        const own = sumOf(box, view.tree.self[k]);
        add(second, `self ${figure(own, unit())} (${percent(own, whole)})`);
      }
      const {counted} = page, calls = counted && counted.old >= 0 && !grouped ? sumOf(box, view.tree.self[counted.old]) : 0;
      if (calls) add(second, plural(calls, "call"));
    }
    const what = many ? `${exact(many.length)} ${isTimed ? "calls" : grouped ? "contexts" : "boxes"} too narrow to draw` : view.name(fn, id);
    const line = (texts, tag) => texts.length ? [element("div", {}, element(tag, {}, texts[0]), texts.slice(1).map(text => ` · ${text}`).join(""))] : [];
    return [...line(first, "b"), ...line(second, "span"), element("div", {class: "name"}, what),
      ...many ? [element("div", {class: "where"}, "together; a click zooms to them")] : [],
      ...fn !== NONE && place(fn) ? [element("div", {class: "where"}, place(fn))] : []];
  };
  // The same for a rectangle of the treemap.
  const tipOfArea = ({group, fn, many, cost = group.cost}) => [
    element("div", {}, element("b", {}, figure(cost, unit())), ` · ${percent(cost, view.tree.weight[0])} of ${page.partTitle() || "the total"}`),
    element("div", {class: "name"}, group ? group.title : many ? `${exact(many.length)} functions too small to draw` : page.nameOf(fn)),
    ...group || many || !place(fn) ? [] : [element("div", {class: "where"}, place(fn))],
  ];
  const tipOfLane = found => page.flame.boxes.lanes.texts(found, page).map(([first, ...more], i) =>
    element("div", i === 1 ? {class: "name"} : i ? {class: "where"} : {}, i ? first : element("b", {}, first), more.map(text => ` · ${text}`).join("")));
  const put = ({clientX: x, clientY: y}) => {
    const {offsetWidth: width, offsetHeight: height} = holder;
    holder.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    holder.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
  };
  const hide = () => { holder.hidden = true; };
  // Shows a box's text at the pointer; without a box, none.
  const show = (box, at, isNew) => {
    if (!box) return hide();
    if (isNew) holder.replaceChildren(...box.lane ? tipOfLane(box) : state.order === "treemap" ? tipOfArea(box) : tipOf(box));
    holder.hidden = false;
    if (at) put(at);
    return undefined;
  };
  return {show, hide, tipOf};
};

// The line above the view: the answer, or what the view shows.
const answerLine = page => {
  const {head, state, view, labelOf, nameOf, unit} = page;
  const link = fn => element("button", {type: "button", title: nameOf(fn), onclick: () => page.choose(fn)}, middleOf(labelOf(fn), 60));
  // The functions that cost or changed most, by self cost.
  const known = new Map();  // by n: the figures, and the functions
  const largest = n => {
    const figures = page.shownColumns().map(k => page.rowFigures("row self", k)), last = known.get(n);
    if (last?.figures.length === figures.length && figures.every((one, k) => one === last.figures[k])) return last.found;
    known.set(n, {figures, found: find(n)});
    return known.get(n).found;
  };
  const find = n => {
    const [before, after] = [state.event.old, state.event.new].map(k => k < 0 ? NO_FIGURES : page.rowFigures("row self", k));
    if (n === 1 && !head.compared) {
      const [most] = summary(before, Math.min(page.rows(), before.length)).extremes;
      if (!page.isCycle(most)) return before[most] > 0 ? [most] : [];
    }
    let least = 0;  // what more costs than is among the largest
    const found = [], rows = Math.min(page.rows(), Math.max(before.length, after.length));
    for (let fn = 0; fn < rows; fn++) {
      const old = fn < before.length ? before[fn] : 0, cost = head.compared ? Math.abs((fn < after.length ? after[fn] : 0) - old) : old;
      if (!(cost > least) || page.isCycle(fn)) continue;
      found.splice(found.findLastIndex(one => one.cost >= cost) + 1, 0, {fn, cost});
      if (found.length > n) found.pop();
      if (found.length === n) least = found.at(-1).cost;
    }
    return found.map(({fn}) => fn);
  };
  const joined = parts => parts.flatMap((part, i) => i ? [i === parts.length - 1 ? " and " : ", ", part] : [part]);
  const answer = () => {
    const {old, new: next} = state.event, whole = page.whole();
    if (head.compared) {
      const listed = largest(20).map(fn => {
        const [before, after] = [old, next].map(k => page.rowFigure("row self", k, fn)), change = after - before;
        return {fn, change, text: `${signed(change, figure(change, unit()))}${before ? "" : " (new)"}`};
      });
      // of memory: what grew
      const grew = UNITS.get(unit().toLowerCase())?.[1] === BYTES ? listed.filter(({change}) => change > 0) : [];
      const changes = (grew.length ? grew : listed).slice(0, 3);
      if (!changes.length) return ["Nothing changed."];
      const [was, is, change] = pair([page.total(), page.totalNew(), page.totalNew() - page.total()], unit());
      const grown = page.totalNew() - page.total();
      return [`${was} → ${is}`, grown ? ` (${signed(grown, change)}${page.total() ? `, ${signed(grown, percent(grown, Math.abs(page.total())))}` : ""})` : " (as before)",
        grew.length ? "; what grew most: " : "; self costs changed most in ", ...joined(changes.map(({fn, text}) => element("span", {}, link(fn), ` ${text}`)))];
    }
    const [fn] = largest(1);
    if (fn === undefined) return [];
    const own = page.rowFigure("row self", old, fn), callers = page.callers(fn), calls = page.callsOf(fn);
    const what = UNITS.has(unit().toLowerCase()) ? "" : ` ${state.event.name}`;  // else figures have the unit
    return [`${percent(own, whole)} of ${figure(whole, unit())}${what} is `, link(fn),
      ...callers.length ? [", called by ", link(callers[0]), callers.length > 1 ? ` and ${plural(callers.length - 1, "other")}` : ""] : [],
      ...calls ? [`; ${plural(calls, "call")}`] : []];
  };
  const hint = () => {
    const {flame, graph} = page, {from, to} = {from: flame.range?.[0], to: flame.range?.[1]};
    if (!view.tree.weight[0]) return [`Nothing to show${!page.events.length ? "" : page.partTitle() ? `: no cost in ${page.partTitle()}` : ": all values are 0"}.`];
    if (state.ranged)
      return [`${page.beginText(from * head.time.length)} to ${page.beginText(to * head.time.length)}: ${page.timeText((to - from) * head.time.length)} with ${plural(state.ranged.n, head.samples ? "sample" : "call")}, ` +
        `${figure(state.ranged.sum, unit())} in all threads shown${page.labels.isChosen ? `, ${page.labels.title()}` : ""}. The table covers this range; Esc clears it.`];
    if (state.order === "graph") return [`The ${exact(graph.nodes.length)} most expensive functions below their callers, calls above ${percent(LEAST_SHARE, 1)}` +
      `${(state.thread >= 0 || page.labels.isChosen) && !page.ofThread() ? ", of all threads" : ""}. Drag moves, the wheel zooms, a click selects. `,
      ...graph.most > graph.nodes.length || graph.isWhole ? [element("button", {type: "button", onclick: () => page.enlargeGraph()}, graph.isWhole ? "Show what can be read" : `Show ${exact(graph.most)}`)] : []];
    if (state.order === "time") return [`Each box is ${head.samples ? "a function in consecutive samples" : "a call"}. ${innerWidth <= PHONE ? "Tap one to zoom, a thread's name to collapse it." :
      "Drag selects a range, click zooms, w a s d move; a click on a name or c collapses threads, e enlarges rows."}${sampledPart(head)}${page.transforms.isActive ? " Transforms do not apply here." : ""}`];
    if (state.order === "inverted") return ["Each box of the first row is a function; its width is its self cost. Its callers follow, each with its part of that cost."];
    if (state.order === "sandwich") return [`${labelOf(state.centre)}: its callers above, its callees below, each with its part of this function's inclusive cost.`];
    return answer();
  };
  return {largest, draw: () => byId("answer").replaceChildren(...hint())};
};
