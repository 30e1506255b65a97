/* Where the topics of a net of routers are drawn: in layers from left to right, so that records flow to the right.
 *
 * A topic's layer is the longest way to it from a topic without a source. Edges that lead back, which are there when routers
 * go around, are found first and left out of that. Within a layer topics are put near their neighbours: some sweeps, each of
 * which sorts a layer by where the neighbours of its topics are on average. No document is needed here: names in, places out. */

const SWEEPS = 6;
export const BOX = { width: 190, height: 34, gapX: 130, gapY: 22 };

/* `edges`: [{ source, dest }]. Gives `{ places: Map(name → { layer, row, x, y }), backward: Set(edge), width, height }`. */
export function layout(edges) {
  const names = [...new Set(edges.flatMap(({ source, dest }) => [source, dest]))].sort();
  const backward = backwardEdges(names, edges);
  const forward = edges.filter((edge) => !backward.has(edge));
  const layers = inLayers(names, layerNumbers(names, forward));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) arrange(layers, forward, sweep % 2 === 0);
  return { ...placed(layers), backward };
}

/* Edges to a topic that is still being walked from: without them there is no way around. */
function backwardEdges(names, edges) {
  const out = by(edges, "source");
  const state = new Map();
  const found = new Set();
  const walk = (start) => {
    // A stack of our own: a chain may be longer than the engine's.
    const stack = [{ name: start, at: 0 }];
    state.set(start, "open");
    while (stack.length > 0) {
      const top = stack.at(-1);
      const edge = (out.get(top.name) ?? [])[top.at];
      top.at += 1;
      if (edge === undefined) {
        state.set(top.name, "done");
        stack.pop();
      } else if (state.get(edge.dest) === "open") {
        found.add(edge);
      } else if (!state.has(edge.dest)) {
        state.set(edge.dest, "open");
        stack.push({ name: edge.dest, at: 0 });
      }
    }
  };
  // Whoever nothing leads to comes first, so that a way around is cut where it comes back.
  const into = by(edges, "dest");
  for (const name of [...names.filter((each) => !into.has(each)), ...names]) if (!state.has(name)) walk(name);
  return found;
}

function layerNumbers(names, forward) {
  const out = by(forward, "source");
  const waiting = new Map(names.map((name) => [name, 0]));
  for (const { dest } of forward) waiting.set(dest, waiting.get(dest) + 1);
  const numbers = new Map(names.map((name) => [name, 0]));
  const ready = names.filter((name) => waiting.get(name) === 0);
  for (let at = 0; at < ready.length; at += 1) {
    for (const { dest } of out.get(ready[at]) ?? []) {
      numbers.set(dest, Math.max(numbers.get(dest), numbers.get(ready[at]) + 1));
      waiting.set(dest, waiting.get(dest) - 1);
      if (waiting.get(dest) === 0) ready.push(dest);
    }
  }
  return numbers;
}

function inLayers(names, numbers) {
  const layers = [];
  for (const name of names) (layers[numbers.get(name)] ??= []).push(name);
  return layers;
}

function arrange(layers, forward, isForth) {
  const neighbours = by(forward, isForth ? "dest" : "source");
  const end = isForth ? "source" : "dest";
  const order = isForth ? layers : [...layers].reverse();
  const rows = new Map(layers.flatMap((layer) => layer.map((name, row) => [name, row])));
  for (const layer of order) {
    const mean = new Map(
      layer.map((name) => {
        const found = (neighbours.get(name) ?? []).map((edge) => rows.get(edge[end]));
        return [name, found.length > 0 ? found.reduce((sum, row) => sum + row, 0) / found.length : rows.get(name)];
      }),
    );
    layer.sort((one, other) => mean.get(one) - mean.get(other) || (one < other ? -1 : 1));
    layer.forEach((name, row) => rows.set(name, row));
  }
}

function placed(layers) {
  const rows = Math.max(1, ...layers.map((layer) => layer.length));
  const [stepX, stepY] = [BOX.width + BOX.gapX, BOX.height + BOX.gapY];
  const places = new Map();
  layers.forEach((layer, number) => {
    // Short layers stand in the middle of the long ones.
    const top = ((rows - layer.length) * stepY) / 2;
    layer.forEach((name, row) => places.set(name, { layer: number, row, x: number * stepX, y: top + row * stepY }));
  });
  return { places, width: layers.length * stepX - BOX.gapX, height: rows * stepY - BOX.gapY };
}

function by(edges, end) {
  const found = new Map();
  for (const edge of edges) {
    if (!found.has(edge[end])) found.set(edge[end], []);
    found.get(edge[end]).push(edge);
  }
  return found;
}
