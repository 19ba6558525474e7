// The fragment of the address holds the state of the page: Back restores the previous one, a link reopens it.
class Address {
  // write(): the state as text; read(given): restores it from URLSearchParams
  constructor(write, read) {
    [this.write, this.read] = [write, read];
    this.written = null;  // the state shown; null: none yet
    this.waiting = 0;
    this.isNew = false;
    for (const type of ["popstate", "hashchange"]) addEventListener(type, () => this.restore());
  }
  // isStep: Back returns to the state before.  Several changes in a row are written together.
  remember(isStep) {
    if (this.written === null) return;
    this.isNew ||= isStep;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      const text = this.write();
      try {
        if (text !== this.written) history[this.isNew ? "pushState" : "replaceState"](null, "", `#${text}`);
      } catch { /* a frame of another page may have no history */ }
      [this.written, this.isNew] = [text, false];
    }, this.isNew ? 0 : 300);
  }
  restore() {
    const text = location.hash.slice(1);
    if (text === this.written) return;
    clearTimeout(this.waiting);
    [this.written, this.isNew] = [null, false];
    this.read(new URLSearchParams(text));
    this.written = text;
  }
}
