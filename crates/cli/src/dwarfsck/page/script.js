"use strict";
// The page is complete without this: here are the treemap and the sorting of tables.
(() => {
  const nodes = JSON.parse(document.getElementById("data").textContent);
  document.documentElement.classList.add("has-script");
  const SIZE = 3, STORED = 4;
  const children = nodes.map(() => []);
  nodes.forEach((node, index) => { if (index > 0) children[node[0]].push(index); });
  const map = document.getElementById("map");
  const crumbs = document.getElementById("crumbs");
  const about = document.getElementById("about");
  let measure = STORED, current = 0, cells = [];

  const bytes = (count) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = 0;
    while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
    return (unit === 0 ? count : count.toPrecision(4)) + " " + units[unit];
  };
  const percent = (part, whole) => whole > 0 ? (100 * part / whole).toPrecision(3) + "%" : "";
  const name = (index) => index === 0 ? "/" : nodes[index][1];
  const path = (index) => {
    const names = [];
    for (; index !== 0; index = nodes[index][0]) names.unshift(nodes[index][1]);
    return "/" + names.join("/");
  };
  const describe = (item) => item.rest
    ? "smaller entries, " + bytes(item.size) + ", stored " + bytes(item.stored)
    : path(item.index) + (item.dir ? " (" + nodes[item.index][5].toLocaleString("en") + " files)" : "") + ", " +
      bytes(item.size) + ", stored " + bytes(item.stored) + (item.size > 0 ? " (" + percent(item.stored, item.size) + ")" : "");
  const ratioClass = (item) => {
    const ratio = item.size > 0 ? item.stored / item.size : 0;
    return "r" + [0.1, 0.25, 0.5, 0.8].filter((limit) => ratio > limit).length;
  };

  // What is in a directory, and what is too small to be told one by one; the largest first.
  const itemsOf = (index) => {
    const items = children[index].map((child) => {
      const [, , dir, size, stored] = nodes[child];
      return { index: child, dir: dir === 1, size, stored };
    });
    const rest = { rest: true, size: nodes[index][SIZE], stored: nodes[index][STORED] };
    for (const item of items) { rest.size -= item.size; rest.stored -= item.stored; }
    rest.size = Math.max(rest.size, 0);
    rest.stored = Math.max(rest.stored, 0);
    if (children[index].length === 0 || rest.size > 0 || rest.stored > 0) items.push(rest);
    for (const item of items) item.weight = measure === SIZE ? item.size : item.stored;
    return items.filter((item) => item.weight > 0).sort((one, other) => other.weight - one.weight);
  };

  // Squarified treemap: rows along the shorter side, as long as that makes them squarer.
  const layout = (items, left, top, width, height) => {
    const placed = [];
    let sum = items.reduce((sum, item) => sum + item.weight, 0), next = 0;
    while (next < items.length && width > 0 && height > 0 && sum > 0) {
      const side = Math.min(width, height), scale = width * height / sum;
      let row = 0, end = next, worst = Infinity;
      while (end < items.length) {
        const grown = row + items[end].weight, length = grown * scale / side;
        const worse = Math.max(length * length / (items[end].weight * scale), items[next].weight * scale / (length * length));
        if (worse > worst) break;
        worst = worse; row = grown; end += 1;
      }
      const length = row * scale / side;
      let at = 0;
      for (; next < end; next += 1) {
        const part = side * items[next].weight / row;
        placed.push(width < height
          ? { item: items[next], left: left + at, top, width: part, height: length }
          : { item: items[next], left, top: top + at, width: length, height: part });
        at += part;
      }
      if (width < height) { top += length; height -= length; } else { left += length; width -= length; }
      sum -= row;
    }
    return placed;
  };

  const put = (parent, tag, place, text) => {
    const element = document.createElement(tag);
    for (const side of ["left", "top", "width", "height"]) element.style[side] = place[side] + "px";
    element.className = "cell " + ratioClass(place.item);
    if (place.width > 24 && place.height > 16) element.appendChild(document.createElement("span")).textContent = text;
    parent.append(element);
    return element;
  };
  const label = (item) => item.rest ? "\u2026" : item.index === undefined ? "" : nodes[item.index][1] + (item.dir ? "/" : "");

  // The inside of a directory, two levels at most: only to look at.
  const fill = (index, area, level) => {
    if (area.width < 30 || area.height < 44) return;
    for (const place of layout(itemsOf(index), area.left, area.top, area.width, area.height)) {
      if (place.width < 3 || place.height < 3) continue;
      put(map, "div", place, label(place.item)).classList.add("inner");
      if (place.item.dir && level < 2) fill(place.item.index, inside(place), level + 1);
    }
  };
  const inside = (place) =>
    ({ left: place.left + 3, top: place.top + 20, width: place.width - 6, height: place.height - 23 });

  const focus = (at) => {
    if (cells.length === 0) { map.focus(); return; }
    cells.forEach((cell, index) => { cell.element.tabIndex = index === at ? 0 : -1; });
    cells[at].element.focus();
  };
  const show = (cell) => { about.textContent = describe(cell.item); };

  const draw = () => {
    map.textContent = "";
    crumbs.textContent = "";
    const way = [];
    for (let index = current; ; index = nodes[index][0]) { way.unshift(index); if (index === 0) break; }
    for (const index of way.length > 40 ? way.slice(-40) : way) {
      const crumb = document.createElement("button");
      crumb.type = "button";
      crumb.textContent = index === 0 ? "/" : name(index) + "/";
      if (index === current) crumb.setAttribute("aria-current", "location");
      crumb.addEventListener("click", () => enter(index));
      crumbs.append(crumb);
    }
    about.textContent = describe({ index: current, dir: true, size: nodes[current][SIZE], stored: nodes[current][STORED] });
    cells = [];
    // Cells that nobody could see or point at are left out; the lists below have what is in them.
    for (const place of layout(itemsOf(current), 0, 0, map.clientWidth, map.clientHeight)) {
      if (place.width < 2 || place.height < 2) continue;
      const cell = { ...place, element: put(map, "button", place, label(place.item)) };
      cell.element.type = "button";
      cell.element.tabIndex = cells.length === 0 ? 0 : -1;
      cell.element.setAttribute("aria-label", describe(place.item));
      cell.element.title = describe(place.item);
      if (!place.item.dir) cell.element.classList.add("file");
      cell.element.addEventListener("click", (event) => { if (event.detail > 0 || place.item.dir) open(cell); });
      cell.element.addEventListener("focus", () => show(cell));
      cell.element.addEventListener("pointerenter", () => show(cell));
      cells.push(cell);
      if (place.item.dir) fill(place.item.index, inside(place), 1);
    }
    // Such as an image of nothing but directories and links.
    map.classList.toggle("nothing", cells.length === 0);
    if (cells.length === 0) map.textContent = "No bytes of files here.";
  };
  const open = (cell) => { if (cell.item.dir) enter(cell.item.index, 0); else show(cell); };
  const enter = (index, at) => {
    const from = current;
    current = index;
    map.classList.add("entered");
    draw();
    if (at !== undefined) { focus(at); return; }
    const back = cells.findIndex((cell) => cell.item.index === from);
    focus(back < 0 ? 0 : back);
  };

  // The nearest cell in a direction: from middle to middle, with what is aside counting double.
  const neighbour = (from, key) => {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
    const middle = (cell) => [cell.left + cell.width / 2, cell.top + cell.height / 2];
    const [x, y] = middle(cells[from]);
    let best = from, least = Infinity;
    cells.forEach((cell, index) => {
      const [cx, cy] = middle(cell);
      const ahead = (cx - x) * dx + (cy - y) * dy, aside = Math.abs((cx - x) * dy) + Math.abs((cy - y) * dx);
      if (index !== from && ahead > 0.5 && ahead + 2 * aside < least) { least = ahead + 2 * aside; best = index; }
    });
    return best;
  };
  map.addEventListener("keydown", (event) => {
    const at = cells.findIndex((cell) => cell.element === document.activeElement);
    if (event.key === "Escape" || event.key === "Backspace") {
      if (current !== 0) enter(nodes[current][0]);
    } else if (at < 0) {
      return;
    } else if (event.key.startsWith("Arrow")) {
      focus(neighbour(at, event.key));
    } else if (event.key === "Home") {
      focus(0);
    } else if (event.key === "End") {
      focus(cells.length - 1);
    } else if (event.key === "Enter" || event.key === " ") {
      open(cells[at]);
    } else {
      return;
    }
    event.preventDefault();
  });
  for (const input of document.querySelectorAll("input[name=measure]")) {
    input.addEventListener("change", () => { measure = input.value === "size" ? SIZE : STORED; draw(); });
  }
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(draw, 100); });

  // Tables are sorted by their headings; numbers are in data-v.
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      if (heading.hasAttribute("data-fixed")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.textContent = "";
      heading.append(button);
      button.addEventListener("click", () => {
        const isNumber = heading.classList.contains("n");
        const was = heading.getAttribute("aria-sort");
        const descending = was ? was === "ascending" : isNumber;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const key = (row) => isNumber ? Number(row.cells[column].dataset.v) : row.cells[column].textContent;
        const order = (one, other) => isNumber ? one[0] - other[0] : one[0] < other[0] ? -1 : one[0] > other[0] ? 1 : 0;
        const rows = [...body.rows].map((row) => [key(row), row]).sort(order);
        if (descending) rows.reverse();
        body.append(...rows.map((row) => row[1]));
      });
    });
  }
  draw();
})();
