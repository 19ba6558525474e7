// The selected box: its costs among all boxes of its function, and its stack, each frame a link, which can be copied.
//
// page: {flame, state, view, unit, labelOf, nameOf, timeText, compared: are there two profiles}
const selectionPanel = page => {
  const {flame, state, view, unit} = page;
  const stackOf = id => {
    const found = [];
    for (; id >= 0 && found.length < 65536; id = flame.boxes.parent(id)) if (flame.boxes.fnOf(id) !== NONE) found.push(id);
    return found.reverse();
  };
  const copy = async (text, button) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // not allowed in this page
      const area = element("textarea", {});
      area.value = text;
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
  };
  // Nothing if no box of the shown function is selected.
  return fn => {
    const {boxes, focused: id} = flame, k = state.event.new >= 0 ? state.event.new : state.event.old;
    if (!boxes || id < 0 || k < 0 || boxes instanceof GroupBoxes || boxes.fnOf(id) !== fn) return [];
    const stack = stackOf(id), parts = [];
    if (boxes.isTimed) parts.push(`${page.timeText(boxes.duration[id])}, self ${page.timeText(boxes.duration[id] * boxes.own({id}))}`);
    else {
      const {self, total} = view.tree, n = boxes.instances(fn).length, {old} = state.event, isPair = page.compared && old >= 0 && old !== k;
      const sides = costs => isPair ? pair([costs[old][id], costs[k][id]], unit()).join(" → ") : figure(costs[k][id], unit());
      parts.push(`${sides(total)}${isPair ? "" : ` (${percent(total[k][id], total[k][0])})`}, self ${sides(self)}` +
        (n > 1 ? `; one of ${exact(n)} boxes of this function` : "; the only box of this function"));
    }
    const text = stack.map((at, depth) => "  ".repeat(depth) + page.nameOf(boxes.fnOf(at))).join("\n");
    return [
      element("h3", {}, "Selected box"), element("p", {class: "box"}, ...parts),
      element("ol", {class: "stack", "aria-label": "Stack"}, ...stack.map(at => {
        const name = page.labelOf(boxes.fnOf(at));
        return element("li", {}, element("button", {type: "button", title: page.nameOf(boxes.fnOf(at)), "aria-current": at === id,
          onclick: () => flame.click({id: at, fn: boxes.fnOf(at)})}, bothEnds(name)));
      })),
      element("button", {type: "button", class: "copy", onclick: event => copy(text, event.target)}, "Copy stack"),
    ];
  };
};
