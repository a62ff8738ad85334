"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : media.matches);
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const nameOf = (i) => (data.names ? data.names[i] : `sample ${i}`);
  const short = (x) => (Number.isFinite(x) ? String(Number(x.toPrecision(4))) : "none");
  const count = (k, noun) => `${k.toLocaleString("en")} ${noun}${k === 1 ? "" : "s"}`;

  function make(tag, options = {}, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(options)) {
      if (key === "text") element.textContent = value;
      else if (key === "on") for (const [event, f] of Object.entries(value)) element.addEventListener(event, f);
      else if (key in element && key !== "role") element[key] = value;
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  function svg(tag, attributes = {}, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // ---- Colours -------------------------------------------------------------------------------

  const clusterColour = (k, alpha = 1) => {
    if (k < 0) return `hsl(20 5% ${isDark() ? 55 : 62}% / ${alpha})`;
    const hue = (190 + k * 137.508) % 360;
    return isDark() ? `hsl(${hue} 55% 66% / ${alpha})` : `hsl(${hue} 52% 42% / ${alpha})`;
  };

  // Colours of values 0..255: from low to high, or from below to above a middle.
  function ramp(stops) {
    const table = new Uint8ClampedArray(256 * 3);
    for (let v = 0; v < 256; v++) {
      const x = (v / 255) * (stops.length - 1);
      const i = Math.min(stops.length - 2, Math.floor(x));
      for (let c = 0; c < 3; c++) table[3 * v + c] = stops[i][c] + (x - i) * (stops[i + 1][c] - stops[i][c]);
    }
    return table;
  }
  const RAMPS = {
    light: {
      rising: ramp([[247, 246, 243], [178, 214, 210], [72, 150, 157], [20, 84, 96], [8, 40, 52]]),
      diverging: ramp([[25, 74, 140], [86, 143, 203], [246, 245, 242], [221, 117, 88], [150, 40, 24]]),
    },
    dark: {
      rising: ramp([[24, 28, 32], [24, 74, 82], [58, 142, 148], [148, 212, 206], [240, 250, 245]]),
      diverging: ramp([[124, 180, 240], [52, 104, 168], [30, 35, 40], [176, 76, 52], [250, 158, 124]]),
    },
  };
  const ramps = () => RAMPS[isDark() ? "dark" : "light"];

  // ---- Tiles: small pictures of samples, cut from sheets that are decoded when first needed -----

  const sheets = new Map();
  const scratch = document.createElement("canvas");
  const scratchContext = scratch.getContext("2d", { willReadFrequently: true });

  function sheet(set, number) {
    const id = `sheet-${set}-${number}`;
    if (!sheets.has(id)) {
      const image = new Image();
      image.src = `data:${data.tiles[set].mime};base64,${$(id).textContent}`;
      sheets.set(id, image.decode().then(() => image));
    }
    return sheets.get(id);
  }

  async function pixels(set, i) {
    const { width, height, columns } = data.tiles[set];
    const image = await sheet(set, Math.floor(i / columns ** 2));
    const place = i % columns ** 2;
    scratch.width = width;
    scratch.height = height;
    scratchContext.clearRect(0, 0, width, height);
    const x = (place % columns) * width;
    const y = Math.floor(place / columns) * height;
    scratchContext.drawImage(image, x, y, width, height, 0, 0, width, height);
    return scratchContext.getImageData(0, 0, width, height);
  }

  function coloured(pixel, table) {
    const out = new ImageData(pixel.width, pixel.height);
    for (let p = 0; p < pixel.data.length; p += 4) {
      const v = 3 * pixel.data[p];
      for (let c = 0; c < 3; c++) out.data[p + c] = table[v + c];
      out.data[p + 3] = pixel.data[p + 3];
    }
    return out;
  }

  // Input minus recovered, 128 in the middle; transparent where nothing was given.
  function difference(input, clean) {
    const out = new ImageData(input.width, input.height);
    for (let p = 0; p < out.data.length; p += 4) {
      let d = 0;
      for (let c = 0; c < 3; c++) d += (input.data[p + c] - clean.data[p + c]) / 3;
      out.data[p] = Math.max(0, Math.min(255, 127.5 + data.gain * d));
      out.data[p + 3] = input.data[p + 3];
    }
    return out;
  }

  function drawLines(canvas, pixel, colour, about) {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Number(canvas.dataset.w), Number(canvas.dataset.h)];
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const band = (h - 8) / pixel.height;
    for (let row = 0; row < pixel.height; row++) {
      const top = 4 + row * band;
      const at = (v) => top + (1 - v / 255) * (band - 2) + 1;
      if (about) {
        context.strokeStyle = css("--line");
        context.beginPath();
        context.moveTo(0, at(127.5));
        context.lineTo(w, at(127.5));
        context.stroke();
      }
      context.strokeStyle = colour;
      context.lineWidth = 1.3;
      context.lineJoin = "round";
      context.beginPath();
      let pen = false;
      for (let x = 0; x < pixel.width; x++) {
        const p = 4 * (row * pixel.width + x);
        if (!pixel.data[p + 3]) { pen = false; continue; }
        const px = 3 + (pixel.width > 1 ? (x / (pixel.width - 1)) * (w - 6) : (w - 6) / 2);
        if (pen) context.lineTo(px, at(pixel.data[p]));
        else { context.moveTo(px, at(pixel.data[p])); context.lineTo(px + 0.8, at(pixel.data[p])); }
        pen = true;
      }
      context.stroke();
    }
  }

  async function paint(canvas) {
    const i = Number(canvas.dataset.sample);
    const what = canvas.dataset.set;
    const set = data.tiles[what === "difference" ? "input" : what];
    let pixel = await pixels(what === "difference" ? "input" : what, i);
    if (what === "difference") pixel = difference(pixel, await pixels("clean", i));
    if (set.kind === "lines") {
      const colour = what === "difference" ? css("--hot") : clusterColour(Number(canvas.dataset.cluster));
      drawLines(canvas, pixel, colour, what === "difference");
    } else {
      if (what === "difference") pixel = coloured(pixel, ramps().diverging);
      else if (set.kind === "heat") pixel = coloured(pixel, set.diverging ? ramps().diverging : ramps().rising);
      canvas.width = pixel.width;
      canvas.height = pixel.height;
      canvas.getContext("2d").putImageData(pixel, 0, 0);
    }
    canvas.dataset.painted = "yes";
  }

  const eye = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      eye.unobserve(target);
      paint(target);
    }
  }, { rootMargin: "300px" });

  // The size of a tile on the page: its longer side is `size`, lines are twice as wide as high.
  function art(what, i, size, cluster, label) {
    const set = data.tiles[what === "difference" ? "input" : what];
    let [w, h] = [set.width, set.height];
    if (set.kind === "lines") [w, h] = [size * 2, Math.max(size, Math.min(size * 2.2, 16 * set.height))];
    else {
      const factor = size / Math.max(w, h);
      [w, h] = [Math.max(12, w * factor), Math.max(12, h * factor)];
    }
    const canvas = make("canvas", { className: "art", role: "img", ariaLabel: label || `${nameOf(i)}, ${what}` });
    canvas.style.width = `${w}px`;
    canvas.style.height = `${h}px`;
    canvas.style.aspectRatio = `${w} / ${h}`;
    if (set.kind !== "lines" && Math.max(set.width, set.height) <= 64) canvas.classList.add("sharp");
    if (set.holes && what !== "clean" && what !== "difference" && set.kind !== "lines") canvas.classList.add("holes");
    Object.assign(canvas.dataset, { set: what, sample: i, cluster, w, h });
    eye.observe(canvas);
    return canvas;
  }

  let face = data.tiles.picture ? "picture" : "input";
  const sets = data.tiles.picture ? ["picture", "input", "clean", "difference"] : ["input", "clean", "difference"];
  const CAPTIONS = { picture: "picture", input: "input", clean: "recovered", difference: "difference" };
  const lines = data.tiles.input.kind === "lines";
  const aspect = data.tiles.input.width / data.tiles.input.height;

  // ---- State: one number, the threshold ----------------------------------------------------------

  const decision = data.decision;
  const scores = decision && decision.scores.map((s) => (s === null ? Infinity : s));
  const fitted = decision && (decision.threshold === null ? Infinity : decision.threshold);
  let threshold = fitted;
  const labelOf = (i) => (decision ? (scores[i] > threshold ? -1 : decision.clusters[i]) : -1);
  const finite = scores && scores.filter(Number.isFinite);
  const low = scores && Math.min(0, ...minmax(finite));
  const high = scores && topOf(minmax(finite)[1]);

  function minmax(values) {
    let [least, most] = [Infinity, -Infinity];
    for (const v of values) { if (v < least) least = v; if (v > most) most = v; }
    return values.length ? [least, most] : [0, 1];
  }
  function topOf(most) { return most > low ? most + 0.04 * (most - low) : low + 1; }

  function describe(i) {
    const parts = [];
    if (decision) {
      const label = labelOf(i);
      if (data.clusterer) parts.push(label < 0 ? "outlier" : `cluster ${label}`);
      else parts.push(label < 0 ? "outlier" : "kept");
      parts.push(`score ${short(scores[i])}`);
    }
    if (data.missing && data.missing[i]) parts.push(`${((100 * data.missing[i]) / data.entries).toFixed(0)} % missing`);
    return parts.join(", ");
  }

  // ---- One sample in detail ------------------------------------------------------------------------

  function show(i) {
    const title = make("h3", { text: nameOf(i) });
    const arts = make("div", { className: "arts" });
    const shown = decision ? sets : sets.filter((s) => s !== "difference");
    for (const what of shown) {
      arts.append(make("figure", {}, art(what, i, 160, labelOf(i)), make("figcaption", { text: CAPTIONS[what] })));
    }
    const close = make("button", { type: "button", className: "quiet", text: "Close" });
    const box = make("dialog", {}, title, arts, make("p", { text: describe(i) }), close);
    close.addEventListener("click", () => box.close());
    box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
    box.addEventListener("close", () => box.remove());
    document.body.append(box);
    box.showModal();
  }

  // A list of tiles is one stop of the Tab key; arrow keys go on inside it.
  function tileList(ids, cluster) {
    const list = make("ul", { className: lines && face !== "picture" ? "tiles lines" : "tiles" });
    ids.forEach((i, position) => {
      const label = `${nameOf(i)}, ${describe(i)}`;
      const button = make("button", { type: "button", className: "tile", title: label, ariaLabel: label, tabIndex: position ? -1 : 0 });
      button.append(art(face, i, 62, cluster, " "));
      button.firstChild.setAttribute("aria-hidden", "true");
      button.addEventListener("click", () => show(i));
      list.append(make("li", {}, button));
    });
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const all = [...list.querySelectorAll("button")];
      const next = all[all.indexOf(document.activeElement) + step];
      if (!next) return;
      event.preventDefault();
      for (const b of all) b.tabIndex = b === next ? 0 : -1;
      next.focus();
    });
    return list;
  }

  // ---- Clusters ---------------------------------------------------------------------------------

  const FIRST = lines && face !== "picture" ? 6 : 12;
  const STEP = 60;
  const cards = [];

  function buildGallery() {
    const order = [...Array(data.n).keys()].sort((a, b) => decision.typicality[b] - decision.typicality[a] || a - b);
    const groups = Array.from({ length: data.cut.n_clusters }, () => []);
    for (const i of order) if (decision.clusters[i] >= 0) groups[decision.clusters[i]].push(i);
    groups.forEach((all, k) => {
      const dot = make("span", { className: "dot" });
      const size = make("span", { className: "size" });
      const body = make("div");
      const card = make("article", { className: "cluster" }, make("header", {}, dot, make("h3", { text: `Cluster ${k}` }), size), body);
      card.dataset.cluster = k;
      $("gallery").append(card);
      cards.push({ k, all, dot, size, body, shown: FIRST, now: null });
    });
  }

  function fillCard(card) {
    const members = card.all.filter((i) => scores[i] <= threshold);
    card.size.textContent = count(members.length, "sample");
    const visible = members.length <= card.shown + 6 ? members : members.slice(0, card.shown);
    const state = `${face}/${visible.join()}/${members.length}`;
    if (state === card.now) return;
    card.now = state;
    card.body.replaceChildren();
    if (!members.length) card.body.append(make("p", { className: "empty", text: "Nothing is left of it at this threshold." }));
    else card.body.append(tileList(visible, card.k));
    const rest = members.length - visible.length;
    if (rest > 0) {
      const more = make("button", { type: "button", className: "quiet more", text: `Show ${Math.min(rest, STEP)} more`, ariaLabel: `Show ${Math.min(rest, STEP)} more of cluster ${card.k}` });
      more.addEventListener("click", () => {
        card.shown += STEP;
        fillCard(card);
        const tiles = card.body.querySelectorAll(".tile");
        if (tiles[visible.length]) tiles[visible.length].focus();
      });
      card.body.append(more);
    }
  }

  // ---- Lists of samples with what became of them ---------------------------------------------------

  function row(i, what, notes, cluster) {
    const wide = lines || what.length > 3 || aspect > 1.6;
    const arts = make("div", { className: "arts" });
    for (const part of what) {
      const canvas = art(part, i, wide ? 90 : 60, cluster, `${nameOf(i)}, ${CAPTIONS[part]}`);
      canvas.title = CAPTIONS[part];
      arts.append(canvas);
    }
    const text = make("div", { className: "what" }, make("b", { text: nameOf(i) }), ...notes.map((n) => make("span", { text: n })));
    const item = make("article", { className: wide ? "triple tall" : "triple" }, arts, text);
    item.dataset.sample = i;
    return item;
  }

  function longList(box, ids, build, state) {
    const visible = ids.slice(0, state.shown);
    const now = `${visible.join()}/${ids.length}`;
    if (now === state.now) return;
    state.now = now;
    const old = new Map([...box.querySelectorAll(".triple")].map((e) => [Number(e.dataset.sample), e]));
    box.replaceChildren(...visible.map((i) => old.get(i) || build(i)));
    if (!ids.length) box.append(make("p", { className: "empty", text: "None at this threshold." }));
    const rest = ids.length - visible.length;
    if (rest > 0) {
      const more = make("button", { type: "button", className: "quiet more wide", text: `Show ${Math.min(rest, STEP)} more of ${rest.toLocaleString("en")}` });
      more.addEventListener("click", () => { state.shown += STEP; longList(box, ids, build, state); });
      box.append(more);
    }
  }

  const byScore = scores && [...Array(data.n).keys()].sort((a, b) => scores[b] - scores[a] || a - b);
  const ranking = { shown: 24, now: null };
  const holes = { shown: 12, now: null };

  function fillRanking() {
    const odd = byScore.filter((i) => labelOf(i) < 0);
    longList($("ranking"), odd, (i) => {
      const notes = [`score ${short(scores[i])}`];
      if (data.clusterer) notes.push(decision.clusters[i] < 0 ? "tied to no cluster" : `nearest: cluster ${decision.clusters[i]}`);
      return row(i, sets, notes, -1);
    }, ranking);
  }

  function buildHoles() {
    const ids = [...Array(data.n).keys()].filter((i) => data.missing[i]).sort((a, b) => data.missing[b] - data.missing[a] || a - b);
    longList($("holes"), ids, (i) => row(i, ["input", "clean"], [`${data.missing[i].toLocaleString("en")} of ${data.entries.toLocaleString("en")} missing`], labelOf(i)), holes);
  }

  // ---- Charts ----------------------------------------------------------------------------------------

  function frame(box, label, margin) {
    const [width, height] = [box.clientWidth, box.clientHeight];
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    box.replaceChildren(picture);
    const [left, top, right, bottom] = margin;
    return { picture, left, top, right: width - right, bottom: height - bottom };
  }

  function ticks(from, to, most) {
    const rough = (to - from) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough);
    const found = [];
    for (let t = Math.ceil(from / step) * step; t <= to + 1e-9 * step; t += step) found.push(Number(t.toPrecision(12)));
    return found;
  }

  let histogram = null;

  function buildHistogram() {
    const box = $("histogram");
    const f = frame(box, "Histogram of the outlier scores with the threshold", [8, 22, 8, 26]);
    const bins = Math.max(20, Math.min(90, Math.floor((f.right - f.left) / 12)));
    const counts = new Array(bins).fill(0);
    for (const s of finite) counts[Math.min(bins - 1, Math.floor(((s - low) / (high - low)) * bins))]++;
    const most = Math.max(1, ...counts);
    const x = (v) => f.left + ((v - low) / (high - low)) * (f.right - f.left);
    const clips = ["kept", "odd"].map((side) => {
      const clip = svg("clipPath", { id: `clip-${side}` });
      const rect = svg("rect", { y: 0, height: f.bottom + 1 });
      clip.append(rect);
      f.picture.append(clip);
      return rect;
    });
    for (const side of ["kept", "odd"]) {
      const group = svg("g", { class: side, "clip-path": `url(#clip-${side})` });
      counts.forEach((c, b) => {
        if (!c) return;
        const h = Math.max(2, Math.sqrt(c / most) * (f.bottom - f.top));
        const w = (f.right - f.left) / bins;
        const bar = svg("rect", { x: f.left + b * w + 0.75, y: f.bottom - h, width: Math.max(1, w - 1.5), height: h, rx: 1.5 });
        bar.append(svg("title", {}, count(c, "sample")));
        group.append(bar);
      });
      f.picture.append(group);
    }
    f.picture.append(svg("line", { class: "axis", x1: f.left, x2: f.right, y1: f.bottom, y2: f.bottom }));
    for (const t of ticks(low, high, Math.max(3, Math.floor((f.right - f.left) / 110)))) {
      f.picture.append(svg("text", { x: x(t), y: f.bottom + 18, "text-anchor": "middle" }, short(t)));
    }
    f.picture.append(svg("text", { x: f.right, y: 10, "text-anchor": "end" }, "outlier score; height: root of the count"));
    const line = svg("line", { class: "cut", y1: 18, y2: f.bottom });
    const grip = svg("circle", { class: "grip", r: 7, cy: (f.top + f.bottom) / 2 });
    f.picture.append(line, grip);
    histogram = { f, x, line, grip, clips };
    moveLine();
  }

  function moveLine() {
    if (!histogram) return;
    const { f, x, line, grip, clips } = histogram;
    const at = Math.max(f.left, Math.min(f.right, x(Math.min(threshold, high))));
    line.setAttribute("x1", at);
    line.setAttribute("x2", at);
    grip.setAttribute("cx", at);
    clips[0].setAttribute("x", 0);
    clips[0].setAttribute("width", Math.max(0, at));
    clips[1].setAttribute("x", at);
    clips[1].setAttribute("width", Math.max(0, f.right - at + 10));
  }

  function dragHistogram(box) {
    const set = (event) => {
      if (!histogram) return;
      const { f } = histogram;
      const left = box.getBoundingClientRect().left;
      const share = (event.clientX - left - f.left) / (f.right - f.left);
      move(low + Math.max(0, Math.min(1, share)) * (high - low));
    };
    box.addEventListener("pointerdown", (event) => { box.setPointerCapture(event.pointerId); set(event); });
    box.addEventListener("pointermove", (event) => { if (box.hasPointerCapture(event.pointerId)) set(event); });
  }

  function buildSpectrum() {
    const { eigenvalues, gaps, n_clusters: chosen } = data.cut;
    const f = frame($("spectrum"), "Eigenvalues and their gaps; the table below has the numbers", [54, 10, 8, 28]);
    const m = gaps.length;
    const step = (f.right - f.left) / m;
    const x = (k) => f.left + (k - 0.5) * step;
    const middle = f.top + 0.46 * (f.bottom - f.top);
    const largest = Math.max(1e-12, ...eigenvalues.slice(0, m));
    const widest = Math.max(1e-12, ...gaps);
    const radius = Math.max(1.5, Math.min(4, step / 3));
    f.picture.append(svg("line", { class: "axis", x1: f.left, x2: f.right, y1: middle, y2: middle }));
    f.picture.append(svg("line", { class: "axis", x1: f.left, x2: f.right, y1: f.bottom, y2: f.bottom }));
    const side = { x: f.left - 8, "text-anchor": "end" };
    f.picture.append(svg("text", { ...side, y: f.top + 8 }, short(largest)), svg("text", { ...side, y: middle }, "0"));
    f.picture.append(svg("text", { x: f.left + 4, y: f.top + 8 }, "eigenvalue"), svg("text", { x: f.left + 4, y: middle + 18 }, "gap"));
    for (let k = 1; k <= m; k++) {
      const y = middle - 3 - (eigenvalues[k - 1] / largest) * (middle - f.top - 8);
      f.picture.append(svg("circle", { class: k <= chosen ? "dot-a" : "ring", cx: x(k), cy: y, r: radius }));
      const h = (Math.max(0, gaps[k - 1]) / widest) * (f.bottom - middle - 24);
      const bar = svg("rect", { class: k === chosen ? "dot-b" : "pale", x: x(k) - step * 0.36, width: step * 0.72, y: f.bottom - h, height: h, rx: 1 });
      bar.append(svg("title", {}, `${count(k, "cluster")}: gap ${short(gaps[k - 1])}`));
      f.picture.append(bar);
    }
    const every = Math.max(1, Math.ceil(m / Math.floor((f.right - f.left) / 46)));
    for (let k = 1; k <= m; k++) {
      const marked = k === chosen;
      if (!marked && (k % every || Math.abs(k - chosen) < every * 0.7)) continue;
      f.picture.append(svg("text", { x: x(k), y: f.bottom + 18, "text-anchor": "middle", class: marked ? "strong" : "" }, k));
    }
  }

  function axes(f, xs, x, y, yTicks, format) {
    f.picture.append(svg("line", { class: "axis", x1: f.left, x2: f.right, y1: f.bottom, y2: f.bottom }));
    for (const t of yTicks) {
      f.picture.append(svg("line", { class: "axis", x1: f.left, x2: f.right, y1: y(t), y2: y(t) }));
      f.picture.append(svg("text", { x: f.left - 8, y: y(t) + 4, "text-anchor": "end" }, format(t)));
    }
    for (const t of ticks(xs[0], xs[1], Math.max(2, Math.floor((f.right - f.left) / 70)))) {
      if (x(t) < f.left + 24) continue; // there stands the name of the axis
      f.picture.append(svg("text", { x: x(t), y: f.bottom + 18, "text-anchor": "middle" }, t));
    }
    f.picture.append(svg("text", { x: f.left - 8, y: f.bottom + 18, "text-anchor": "end" }, "iteration"));
  }

  function curve(f, points, style) {
    if (points.length > 1) f.picture.append(svg("polyline", { class: `curve ${style}`, points: points.map((p) => p.join()).join(" ") }));
    for (const [cx, cy] of points.length > 40 ? points.slice(-1) : points) f.picture.append(svg("circle", { class: `dot-${style}`, cx, cy, r: 3 }));
  }

  function buildConvergence() {
    const h = data.history;
    const its = h.map((c) => c.iteration);
    const xs = h.length > 1 ? [its[0], its[its.length - 1]] : [0, Math.max(1, its[0])];
    const at = (f) => (v) => f.left + ((v - xs[0]) / (xs[1] - xs[0])) * (f.right - f.left - 8);
    const f = frame($("bounds"), "Primal and dual objective; the table below has the numbers", [64, 14, 8, 28]);
    const values = h.flatMap((c) => [c.primal, c.dual]).filter((v) => v !== null);
    let [least, most] = minmax(values);
    const pad = 0.08 * (most - least || Math.abs(most) || 1);
    [least, most] = [least - pad, most + pad];
    const y = (v) => f.bottom - ((v - least) / (most - least)) * (f.bottom - f.top);
    const x = at(f);
    axes(f, xs, x, y, ticks(least, most, 6), (v) => v.toFixed(Math.max(0, Math.min(9, Math.ceil(1 - Math.log10(most - least))))));
    curve(f, h.map((c) => [x(c.iteration), y(c.primal)]), "a");
    curve(f, h.filter((c) => c.dual !== null).map((c) => [x(c.iteration), y(c.dual)]), "b");
    const g = frame($("gap"), "Relative duality gap, on a logarithmic scale", [64, 14, 8, 28]);
    const gaps = h.filter((c) => c.gap !== null && c.gap > 0);
    if (!gaps.length) { g.picture.append(svg("text", { x: g.left, y: g.top + 20 }, "The gap is zero.")); return; }
    const logs = gaps.map((c) => Math.log10(c.gap));
    const [bottom, top] = [Math.floor(Math.min(...logs) - 0.01), Math.ceil(Math.max(...logs) + 0.01)];
    const gy = (v) => g.bottom - ((v - bottom) / (top - bottom)) * (g.bottom - g.top);
    const powers = [];
    for (let p = top; p >= bottom; p -= Math.ceil((top - bottom) / 6)) powers.push(p);
    axes(g, xs, at(g), gy, powers, (p) => (p >= -5 ? `${Number((100 * 10 ** p).toPrecision(1))} %` : `1e${p + 2} %`));
    curve(g, gaps.map((c, i) => [at(g)(c.iteration), gy(logs[i])]), "a");
  }

  // ---- The graph -----------------------------------------------------------------------------------

  function fit(canvas) {
    const ratio = window.devicePixelRatio || 1;
    const size = canvas.parentElement.clientWidth;
    canvas.width = canvas.height = Math.round(size * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, size, size);
    return [context, size];
  }

  let matrixImage = null;
  async function drawMatrix() {
    if (!matrixImage) {
      const image = new Image();
      image.src = `data:image/png;base64,${data.cut.matrix}`;
      await image.decode();
      const canvas = make("canvas", { width: image.width, height: image.height });
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.drawImage(image, 0, 0);
      matrixImage = { canvas, pixel: context.getImageData(0, 0, image.width, image.height) };
    }
    matrixImage.canvas.getContext("2d").putImageData(coloured(matrixImage.pixel, ramps().rising), 0, 0);
    const [context, size] = fit($("matrix"));
    const edge = 12;
    const inner = size - edge;
    context.imageSmoothingEnabled = inner < matrixImage.canvas.width;
    context.drawImage(matrixImage.canvas, edge, edge, inner, inner);
    const { bounds } = data.cut;
    for (let k = 0; k + 1 < bounds.length; k++) {
      const [a, b] = [edge + bounds[k] * inner, edge + bounds[k + 1] * inner];
      context.fillStyle = clusterColour(k);
      context.fillRect(a, 2, Math.max(0.5, b - a - 1), edge - 5);
      context.fillRect(2, a, edge - 5, Math.max(0.5, b - a - 1));
      context.strokeStyle = clusterColour(k, 0.8);
      context.lineWidth = 1;
      context.strokeRect(a + 0.5, a + 0.5, Math.max(0, b - a - 1), Math.max(0, b - a - 1));
    }
  }

  const placed = [];
  let focus = -1;
  function drawMap() {
    const [context, size] = fit($("map"));
    const [px, py] = data.cut.places;
    const ids = [...Array(data.n).keys()].filter((i) => px[i] !== null);
    const [ax, bx] = minmax(ids.map((i) => px[i]));
    const [ay, by] = minmax(ids.map((i) => py[i]));
    // Circles stay round where axes mean the same.
    const same = data.cut.n_clusters > 1;
    const span = (a, b) => (same ? Math.max(bx - ax, by - ay) : b - a) || 1;
    const margin = 16;
    const place = (v, a, b) => margin + ((v - (a + b) / 2) / span(a, b) + 0.5) * (size - 2 * margin);
    placed.length = 0;
    const radius = ids.length > 2000 ? 2.2 : ids.length > 600 ? 3 : 4;
    for (const i of ids) placed.push([place(px[i], ax, bx), size - place(py[i], ay, by), i]);
    for (const odd of [true, false]) {
      for (const [x, y, i] of placed) {
        if (scores[i] > threshold !== odd) continue;
        context.beginPath();
        context.arc(x, y, radius, 0, 7);
        if (odd) {
          context.strokeStyle = css("--hot");
          context.stroke();
        } else {
          context.fillStyle = clusterColour(decision.clusters[i], 0.75);
          context.fill();
        }
      }
    }
    if (data.cut.n_clusters > 2 && data.cut.n_clusters <= 60) labelClusters(context);
    if (focus >= 0) {
      const [x, y] = placed[focus];
      context.beginPath();
      context.arc(x, y, radius + 4, 0, 7);
      context.strokeStyle = css("--ink");
      context.lineWidth = 2;
      context.stroke();
    }
  }

  // The number of a cluster stands in the middle of its samples, on a halo of the page's colour.
  function labelClusters(context) {
    const groups = Array.from({ length: data.cut.n_clusters }, () => [[], []]);
    for (const [x, y, i] of placed) {
      if (scores[i] > threshold) continue;
      groups[decision.clusters[i]][0].push(x);
      groups[decision.clusters[i]][1].push(y);
    }
    const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 3.5;
    context.lineJoin = "round";
    groups.forEach(([xs, ys], label) => {
      if (!xs.length) return;
      const [x, y] = [median(xs), median(ys)];
      context.strokeStyle = css("--panel");
      context.fillStyle = css("--ink");
      context.strokeText(label, x, y);
      context.fillText(label, x, y);
    });
    context.lineWidth = 1;
  }

  function point(at) {
    focus = at;
    const tip = $("tip");
    if (at < 0) { tip.hidden = true; drawMap(); return; }
    const [x, y, i] = placed[at];
    if (tip.dataset.sample !== String(i)) {
      const words = make("div", {}, make("b", { text: nameOf(i) }), make("span", { text: describe(i) }));
      tip.replaceChildren(art(face, i, lines ? 34 : 56, labelOf(i)), words);
      tip.dataset.sample = i;
    }
    tip.hidden = false;
    const figure = tip.parentElement.getBoundingClientRect();
    const canvas = $("map").getBoundingClientRect();
    const left = canvas.left - figure.left + x;
    const top = canvas.top - figure.top + y;
    tip.style.left = `${Math.max(4, Math.min(left + 14, figure.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${top > 90 ? top - tip.offsetHeight - 12 : top + 14}px`;
    $("map").setAttribute("aria-label", `${nameOf(i)}, ${describe(i)}`);
    drawMap();
  }

  function hoverMap() {
    const canvas = $("map");
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let [best, at] = [400, -1];
      placed.forEach(([a, b], k) => {
        const d = (a - x) ** 2 + (b - y) ** 2;
        if (d < best) [best, at] = [d, k];
      });
      if (at !== focus) point(at);
    });
    canvas.addEventListener("pointerleave", () => point(-1));
    canvas.addEventListener("blur", () => point(-1));
    canvas.addEventListener("click", () => { if (focus >= 0) show(placed[focus][2]); });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step && !placed.length) drawChart("map"); // the focus may come before the eye
      if (step && placed.length) {
        event.preventDefault();
        point((focus + step + placed.length) % placed.length);
      } else if (event.key === "Enter" && focus >= 0) {
        event.preventDefault(); // else the key would go on to the button of the dialog
        show(placed[focus][2]);
      }
      else if (event.key === "Escape") point(-1);
    });
  }

  // ---- The threshold moves ---------------------------------------------------------------------------

  const slider = $("slider");
  const exact = $("exact");
  let waiting = false;

  function move(value, from) {
    threshold = Number.isFinite(value) && from !== "exact" && from !== "fit" ? Number(value.toPrecision(6)) : value;
    if (from !== "slider") slider.value = Math.round((1000 * (Math.min(threshold, high) - low)) / (high - low));
    if (from !== "exact") exact.value = Number.isFinite(threshold) ? String(threshold) : "";
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; update(); });
  }

  function update() {
    let odd = 0;
    for (let i = 0; i < data.n; i++) if (labelOf(i) < 0) odd++;
    const live = { outliers: odd.toLocaleString("en"), kept: (data.n - odd).toLocaleString("en"), share: `${((100 * odd) / data.n).toFixed(1)}%` };
    for (const element of document.querySelectorAll("[data-live]")) {
      const text = live[element.dataset.live];
      if (element.textContent !== text) element.textContent = text;
    }
    slider.setAttribute("aria-valuetext", `${short(threshold)}: ${count(odd, "outlier")}`);
    const value = Number.isFinite(threshold) ? String(threshold) : 'float("inf")';
    $("relabel").textContent = `est.relabel(threshold=${value}${data.clusterer ? ", recut=False" : ""})`;
    moveLine();
    cards.forEach(fillCard);
    fillRanking();
    if (data.cut && seen.has("map")) drawChart("map");
  }

  function csv() {
    const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const rows = ["index,name,label,outlier_score"];
    for (let i = 0; i < data.n; i++) rows.push(`${i},${quote(data.names ? data.names[i] : String(i))},${labelOf(i)},${scores[i]}`);
    return rows.join("\r\n") + "\r\n";
  }

  function download() {
    const link = make("a", { href: URL.createObjectURL(new Blob([csv()], { type: "text/csv" })), download: "labels.csv" });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // ---- Start -------------------------------------------------------------------------------------------

  // Charts are drawn when they come near, and again when their size or the theme changes.
  const seen = new Map();
  const charts = { histogram: buildHistogram, spectrum: buildSpectrum, bounds: buildConvergence, matrix: drawMatrix, map: drawMap };

  function drawChart(id) {
    const width = $(id).parentElement.clientWidth;
    seen.set(id, width);
    if (width > 100) charts[id](); // a window that has no size yet will get one
  }

  function watch() {
    const near = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting || seen.has(target.id)) continue;
        drawChart(target.id);
      }
    }, { rootMargin: "400px" });
    const size = new ResizeObserver(() => {
      for (const [id, width] of seen) {
        if ($(id).parentElement.clientWidth !== width) drawChart(id);
      }
    });
    for (const id of Object.keys(charts)) if ($(id)) near.observe($(id));
    size.observe($("main"));
  }

  function retint() {
    for (const { k, dot } of cards) dot.style.background = clusterColour(k);
    for (const canvas of document.querySelectorAll("canvas.art[data-painted]")) paint(canvas);
    for (const id of seen.keys()) if (id === "matrix" || id === "map") drawChart(id);
    $("theme").textContent = isDark() ? "Light" : "Dark";
    $("theme").setAttribute("aria-label", isDark() ? "Change to light colours" : "Change to dark colours");
  }

  if (decision) {
    if (data.clusterer) buildGallery();
    drawChart("histogram");
    dragHistogram($("histogram"));
    slider.addEventListener("input", () => move(low + (slider.value / 1000) * (high - low), "slider"));
    exact.addEventListener("input", () => {
      const value = exact.value.trim() === "" ? Infinity : Number(exact.value);
      if (!Number.isNaN(value)) move(value, "exact");
    });
    $("reset").addEventListener("click", () => move(fitted, "fit"));
    $("export").addEventListener("click", download);
    move(fitted, "fit");
    update();
  }
  if (data.missing) buildHoles();
  if (data.cut) hoverMap();
  for (const choice of document.querySelectorAll("input[name=face]")) {
    choice.addEventListener("change", () => { face = choice.value; cards.forEach(fillCard); });
  }
  $("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; retint(); });
  media.addEventListener("change", retint);
  $("copy").addEventListener("click", async () => {
    const text = $("code").textContent;
    try { await navigator.clipboard.writeText(text); $("copy").textContent = "Copied"; } catch {
      getSelection().selectAllChildren($("code"));
      $("copy").textContent = "Selected";
    }
    setTimeout(() => { $("copy").textContent = "Copy"; }, 1500);
  });
  retint();
  watch();
})();
