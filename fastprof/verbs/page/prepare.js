// What is likely to be looked at next, the figures of all functions and the inverted view, is made in idle time: in parts
// of a few milliseconds, for which no event waits long.
const LARGE = 50_000, PART = 50_000;  // contexts of a page that needs it, and of a part

// view: {tree}; k: the value column, n: the number of functions; boxes(): of the inverted view
const prepare = (view, k, n, boxes) => {
  const {tree} = view, idle = window.requestIdleCallback || (work => setTimeout(() => work({timeRemaining: () => 10}), 50));
  if (tree.n < LARGE) return;
  const parts = (function* () {
    for (let stop = PART; !tree.prepareFigures(k, n, stop); stop += PART) yield;
    for (const items of Object.values(tree.figuresOf(k, n))) {
      yield;
      summary(items, n);
    }
    yield;
    const [division] = boxes().rootDivisions();
    while (!division.proceed()) yield;
  })();
  const go = deadline => {
    while (deadline.timeRemaining() > 8) if (view.tree !== tree || parts.next().done) return;
    idle(go);
  };
  idle(go);
};
