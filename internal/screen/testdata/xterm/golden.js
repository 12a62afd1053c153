// Prints what xterm.js shows for bytes on standard input, as JSON:
//   npm install @xterm/headless@5.5.0    (anywhere)
//   NODE_PATH=.../node_modules node golden.js < NAME.raw > NAME.json
// NUL SIZE rows,cols NUL in the bytes is a change of the terminal's size.
const { Terminal } = require('@xterm/headless');
let rows = 24, cols = 80;
const all = require('fs').readFileSync(0);
if (process.argv.length > 3) [rows, cols] = process.argv.slice(2).map(Number);
const term = new Terminal({ rows, cols, allowProposedApi: true, scrollback: 0 });
const write = (b) => new Promise((done) => term.write(b, done));

function colour(c, which) {
  if (c[`is${which}Default`]()) return '-';
  const v = c[`get${which}Color`]();
  return c[`is${which}Palette`]() ? 'p' + v : '#' + v.toString(16).padStart(6, '0');
}

function style(c) {
  const flags = [['b', 'Bold'], ['d', 'Dim'], ['i', 'Italic'], ['u', 'Underline'], ['k', 'Blink'], ['r', 'Inverse'], ['h', 'Invisible'], ['s', 'Strikethrough']];
  return colour(c, 'Fg') + '/' + colour(c, 'Bg') + '/' + flags.map(([f, n]) => (c['is' + n]() ? f : '')).join('');
}

// A line is its cells: text and style, equal neighbours in style as a run.
function line(y) {
  const l = term.buffer.active.getLine(term.buffer.active.baseY + y);
  let cells = [];
  for (let x = 0; x < term.cols; x++) {
    const c = l.getCell(x);
    if (c.getWidth() === 0) continue;
    cells.push([c.getChars() || ' ', style(c)]);
  }
  while (cells.length && cells[cells.length - 1].join() === ' ,-/-/') cells.pop();
  const runs = [];
  for (const [text, s] of cells) {
    if (runs.length && runs[runs.length - 1][1] === s) runs[runs.length - 1][0] += text;
    else runs.push([text, s]);
  }
  return runs;
}

(async () => {
  for (let rest = all; ;) {
    const at = rest.indexOf('\0SIZE');
    await write(at < 0 ? rest : rest.subarray(0, at));
    if (at < 0) break;
    const end = rest.indexOf(0, at + 1);
    const [r, c] = rest.subarray(at + 5, end).toString().split(',').map(Number);
    term.resize(c, r);
    rest = rest.subarray(end + 1);
  }
  const b = term.buffer.active, lines = [];
  for (let y = 0; y < term.rows; y++) lines.push(line(y));
  while (lines.length && !lines[lines.length - 1].length) lines.pop();
  const out = { rows: term.rows, cols: term.cols, alternate: b.type === 'alternate', cursor: [b.cursorY, Math.min(b.cursorX, term.cols - 1)], lines: 0 };
  console.log(JSON.stringify(out).replace('"lines":0', '"lines":[\n' + lines.map((l) => JSON.stringify(l)).join(',\n') + '\n]'));
})();
