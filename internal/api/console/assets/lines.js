// Goes on with the lines of charts where the server has left off, by the same rules (chart.go): values
// are spread over the box of their picture, and lines break where nothing was measured.
const lines = new WeakMap();

// Told is the time of a value and all values from it on.
export function points(told) {
  for (const [id, [at, ...values]] of Object.entries(told)) {
    const pen = document.getElementById(id), svg = pen?.ownerSVGElement;
    if (svg) goOn(pen, scale(svg), at, values);
  }
}

function scale({ dataset: { box, max, step } }) {
  const [left, right, top, base] = box.split(" ").map(Number);
  return { left, right, top, base, max: Number(max), step: Number(step) };
}

function goOn(pen, s, at, values) {
  const line = lines.get(pen) ?? read(pen, s);
  const first = (at - line.from) / s.step, length = line.values.length;
  line.values = first >= 0 && first <= length ? [...line.values.slice(0, first), ...values] : values;
  line.from = at - (line.values.length - values.length) * s.step;
  const gone = Math.max(line.values.length - length, 0);
  line.values.splice(0, gone);
  line.from += gone * s.step;
  lines.set(pen, line);
  const [path, plane] = draw(line.values, s);
  pen.setAttribute("d", path);
  pen.previousElementSibling.setAttribute("d", plane);
}

// What the server has drawn says what it was drawn from.
function read(pen, s) {
  const values = Array(Number(pen.dataset.n)).fill(null);
  for (const run of pen.getAttribute("d").split("M").slice(1)) {
    const at = run.match(/[\d.]+/g).map(Number);
    for (let i = 0; i < at.length; i += 2) {
      const n = Math.round((at[i] - s.left) / (s.right - s.left) * (values.length - 1));
      values[n] = (s.base - at[i + 1]) / (s.base - s.top) * s.max;
    }
  }
  return { from: Number(pen.dataset.from), values };
}

const round = n => Math.round(n * 10) / 10;

function draw(values, s) {
  let path = "", plane = "", run = [];
  const end = () => {
    if (!run.length) return;
    const line = `M${run[0]}L${run.join(" ")}`;
    path += line;
    plane += `${line}V${s.base}H${run[0].split(" ")[0]}Z`;
    run = [];
  };
  values.forEach((v, i) => {
    if (v === null) { end(); return; }
    const x = s.left + i / (values.length - 1) * (s.right - s.left), y = s.base - Math.min(v / s.max, 1) * (s.base - s.top);
    run.push(`${round(x)} ${round(y)}`);
  });
  end();
  return [path, plane];
}
