// The overview above a flame graph or a time order: all of it, small, and the part that is shown as a window.  Dragging
// the window moves it, dragging an edge zooms; a click elsewhere moves the window there.
class Minimap {
  // flame: the graph; its boxes, from, to and move(from, span)
  constructor(flame) {
    this.flame = flame;
    this.canvas = byId("minimap");
    this.canvas.addEventListener("pointerdown", event => this.press(event));
    this.canvas.addEventListener("pointermove", event => { this.canvas.style.cursor = this.edgeAt(event) ? "ew-resize" : "grab"; });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }
  share({clientX}) {
    const {left, width} = this.canvas.getBoundingClientRect();
    return (clientX - left) / (width || 1);
  }
  edgeAt(event) {
    const near = 5 / (this.canvas.clientWidth || 1), x = this.share(event), {from, to} = this.flame;
    return Math.abs(x - from) < near ? "from" : Math.abs(x - to) < near ? "to" : "";
  }
  press(event) {
    event.preventDefault();
    const {flame, canvas} = this, edge = this.edgeAt(event), start = this.share(event);
    let {from, to} = flame;
    const span = to - from;
    if (!edge && (start < from || start > to)) flame.move(start - span / 2, span);
    ({from, to} = flame);
    canvas.setPointerCapture(event.pointerId);
    const move = now => {
      const x = Math.min(1, Math.max(0, this.share(now))), least = 1e-9;
      if (edge === "from") flame.move(Math.min(x, to - least), to - Math.min(x, to - least));
      else if (edge === "to") flame.move(from, Math.max(x, from + least) - from);
      else flame.move(from + x - start, span);
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("lostpointercapture", () => canvas.removeEventListener("pointermove", move), {once: true});
  }
  // The small picture is made once for boxes, colours and width; the window is drawn over it.
  draw() {
    const {flame, canvas} = this, {boxes} = flame, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!boxes || !width) return;
    const ratio = window.devicePixelRatio || 1, key = [ratio, flame.view.coloured()].join();
    // the scroll bar of the graph makes no difference here
    if (this.boxes !== boxes || this.width !== width) [this.boxes, this.width, this.key] = [boxes, width, ""];
    if (this.key !== key) {
      if (!this.key && this.isWaiting !== boxes) {  // the graph comes first
        this.isWaiting = boxes;
        setTimeout(() => this.draw(), 30);
        return;
      }
      this.isWaiting = null;
      this.key = key;
      const picture = this.picture = document.createElement("canvas"), pen = picture.getContext("2d");
      [picture.width, picture.height] = [width * ratio, height * ratio];
      pen.scale(ratio, ratio);
      const room = height - 4, high = Math.min(4, room / Math.max(1, boxes.rows));
      for (const box of flame.whole(boxes.all?.width || width)) {
        pen.fillStyle = flame.view.colour(box)[0];
        const y = 2 + box.row * high;
        pen.fillRect(box.x * width, flame.flipped ? height - y - high : y, Math.max(0.5, box.width * width), Math.max(0.5, high - (high > 2 ? 0.5 : 0)));
      }
    }
    resize(canvas, Math.round(width * ratio), Math.round(height * ratio));
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement), {from, to} = flame;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(this.picture, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (from <= 0 && to >= 1) return;
    pen.fillStyle = style.getPropertyValue("--back");
    pen.globalAlpha = 0.7;
    pen.fillRect(0, 0, from * width, height);
    pen.fillRect(to * width, 0, width - to * width, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = style.getPropertyValue("--accent");
    pen.lineWidth = 2;
    pen.strokeRect(from * width + 1, 1, Math.max(2, (to - from) * width - 2), height - 2);
  }
}
