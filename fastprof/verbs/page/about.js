// What the page is of: its title, the summary in its head, and "About this page".
//
// page: {data, head, state, events, unitOf(event), shownColumns(), timeText(ticks), labels, sources, assembly}
const aboutPage = page => {
  const {data, head, state, events, unitOf, shownColumns, timeText, labels, sources, assembly} = page;
  // The totals of both sides; of an event that one side lacks, that of the other.
  const totals = event => {
    const sides = [event.old, event.new].filter(k => k >= 0);
    const only = !head.compared || sides.length === 2 ? "" : event.old < 0 ? " (new only)" : " (old only)";
    return pair(sides.map(k => head.totals[k]), unitOf(event)).join(" → ") + only;
  };
  const about = () => {
    if (head.series) drawSeries(head.series);
    const facts = [];
    const add = (name, ...texts) => {
      for (const text of texts) facts.push(element("dt", {}, name), element("dd", {}, text));
    };
    for (const input of head.inputs)
      add(head.compared ? input.side ? "new" : "old" : "input", `${input.name} (${input.format}, ${input.view})`);
    add("program", ...head.programs);
    for (const event of events) {
      add(`total ${event.name}`, totals(event) + (event.long && event.long !== event.name ? `, ${event.long}` : ""));
    }
    if (head.compared) add("colours", "red: costs more in the new profile; blue: costs less. Stronger colours are larger shares of " +
      "the zoomed box. The width of a box is the larger of its two costs.");
    if (head.estimated) add("estimate", "a call graph does not record whole stacks, so the flame graph is estimated; " +
      "its self costs are exact. The table, callers and callees are exact.");
    const cut = shownColumns().map(k => (head.compared ? k === state.event.old ? "old " : "new " : "") + percent(head.cut[k], head.totals[k]));
    if (head.cut.some(value => value))
      add("pruned", `${cut.join(", ")} of the cost is in [pruned]: of ${exact(head.all_contexts)} contexts, the smallest ` +
        "do not fit this page; --prune 0 keeps all. The table is exact.");
    if (head.time && head.time.left_out)
      add("time order", `${plural(head.time.left_out, "call")} shorter than ${timeText(head.time.shortest)} ${head.time.left_out === 1 ? "is shown as part of its caller" : "are shown as part of their callers"}`);
    if (head.samples) add("time order", `of ${head.events[head.samples.event].name}: a sample lasts until the next one of its thread, at most ${LASTS} times the median distance of samples.${sampledPart(head)}`);
    add("counters, events and states", ...trackFacts(head, timeText));
    add("labels", ...labels.facts());
    add("source", ...sources.facts());
    add("instructions", ...assembly.facts());
    for (const [what, texts] of Object.entries(head.logged)) add(what.replace("_", " "), ...texts);
    if (head.command) add("command", head.command);
    add("made by", head.made_by);
    const keys = [["/ t", "search, which filters the table"], ["1 to 7", "views"], ["g", "flame graph: arrows move, Enter zooms"], ["Esc", "zoom out"], ["f", "flip"],
      ["h x", "hide the selected function, focus on it"], ["X", "focus on the subtree of the selected box"], ["H o", `hide or collapse its ${objectTitle(data)}`], ["r", "collapse recursion"],
      ["m", "merge lines"], ["u U", "undo the last transform, all"], ["Shift+F10", "menu of the selected function"],
      ...head.time ? [["w a s d", "zoom and pan in time order"], ["c", "collapse or expand all threads there"], ["e", "enlarge rows there, or fit all threads"]] : [], ...head.tracks?.n_events ? [["n p", "next and previous event there"]] : []];
    byId("about").append(element("h2", {}, "About this page"), element("dl", {}, ...facts),
      element("h2", {}, "Keys"), element("dl", {class: "keys"}, ...keys.flatMap(([key, what]) => [
        element("dt", {}, ...(key.includes(" to ") ? [key] : key.split(" ")).map(one => element("kbd", {}, one))), element("dd", {}, what)])));
  };
  byId("title").textContent = head.title;
  document.title = `${head.title} - fastprof report`;
  const summary = !events.length ? "Nothing was recorded." : events.slice(0, 6).map(event => `${event.name}: ${totals(event)}`).join(" · ") + (events.length > 6 ? ` · and ${events.length - 6} more` : "") + (head.estimated ? " · flame graph estimated from a call graph" : "");
  const drawSummary = () => {
    const pruned = shownColumns().filter(k => head.cut[k]).map(k => percent(head.cut[k], head.totals[k]));
    byId("summary").textContent = summary + (pruned.length ? ` · ${pruned.join(" → ")} pruned: too small for this page` : "") +
      labels.facts().map(text => ` · ${text}`).join("");
  };
  return {about, drawSummary};
};
