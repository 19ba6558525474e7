// What is likely to be looked at next (the figures of all functions, the inverted view) and memory for the next transform are made in
// idle time: in parts of a few milliseconds, for which no event waits long.
const LARGE = 50_000, PART = 50_000;  // contexts of a page that needs it, and of a part

// view: {tree}; k: the value column, n: the number of functions; boxes(): of the inverted view; lay(boxes): what it shows
const prepare = (view, k, n, boxes, lay) => {
  const {tree} = view, idle = window.requestIdleCallback || (work => setTimeout(() => work({timeRemaining: () => 10}), 50));
  if (tree.n < LARGE) return;
  const parts = (function* () {
    for (let stop = PART; !tree.prepareFigures(k, n, stop); stop += PART) yield;
    const figures = Object.values(tree.figuresOf(k, n));
    for (const items of figures) {
      yield;
      summary(items, n);
    }
    yield;
    rowsWith(figures, n);
    yield;
    const [division] = boxes().rootDivisions();
    while (!division.proceed()) yield;
    yield;
    lay(boxes());
    for (const make of spare(tree.n)) {
      yield;
      make();
    }
  })();
  const go = deadline => {
    while (deadline.timeRemaining() > 8) if (view.tree !== tree || parts.next().done) return;
    idle(go);
  };
  idle(go);
};
