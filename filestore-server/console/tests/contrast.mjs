// Computes the contrast of the colours of tokens.css on every surface that they stand on: `node contrast.mjs`.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

const css = await readFile(process.argv[2] ?? new URL('../src/style/tokens.css', import.meta.url), 'utf8');

function tokens(start) {
  const from = css.indexOf(start);
  assert.ok(from >= 0, start);
  const block = css.slice(from, css.indexOf('}', from));
  return Object.fromEntries([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, colour]) => [name, colour]));
}
function luminance(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
export function contrast(one, other) {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const GROUNDS = ['canvas', 'surface', 'sunken', 'hover', 'raised', 'select'];
const RULES = [
  [['ink', 'ink-2', 'ink-3'], GROUNDS, 4.5],
  [['ink', 'ink-2'], ['press'], 4.5],
  [['accent'], ['surface', 'raised', 'accent-soft'], 4.5],
  [['on'], ['button'], 4.5],
  [['on'], ['accent'], 4.5],
  [['ok', 'warn', 'bad'], ['surface', 'raised', 'hover', 'ok-soft', 'warn-soft', 'bad-soft'], 4.5],
  [['ink'], ['ok-soft', 'warn-soft', 'bad-soft'], 4.5],
  [['ok-dot', 'warn-dot', 'bad-dot', 'control'], ['surface', 'raised', 'hover'], 3],
  [['accent'], ['accent-mid'], 3],
];
const faults = [];
for (const [name, values] of [['light', tokens(':root {\n  color-scheme: light')], ['dark', tokens(':root[data-theme="dark"]')]]) {
  for (const [colours, grounds, least] of RULES) {
    for (const colour of colours) {
      for (const ground of grounds) {
        assert.ok(values[colour] && values[ground], `${colour} and ${ground}`);
        const found = contrast(values[colour], values[ground]);
        if (found < least) faults.push(`${name}: ${colour} on ${ground} has ${found.toFixed(2)}, needs ${least}`);
      }
    }
  }
}
assert.deepEqual(faults, []);
