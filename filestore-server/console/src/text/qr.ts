/**
 * QR codes (ISO/IEC 18004) of addresses: bytes, error correction M, versions 1 to 20, so at most 666 bytes.
 *
 * The fixed choices keep it a tenth of a library. The test compares each module with another encoder's.
 */

/** Codewords for correction in each block, and blocks, by version. */
const CORRECTION = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16];

const MASKS: ((x: number, y: number) => number)[] = [
  (x, y) => (x + y) % 2,
  (_, y) => y % 2,
  (x) => x % 3,
  (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2,
  (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

/** Rows of modules, true for dark, without the quiet zone of 4 around them. Null if the text is too long. */
export function qr(text: string, mask?: number): boolean[][] | null {
  const bytes = new TextEncoder().encode(text);
  const version = CORRECTION.findIndex((_, at) => headBits(at + 1) + bytes.length * 8 <= dataBytes(at + 1) * 8) + 1;
  if (version === 0) return null;

  const codewords = interleave(fill(bytes, version), version);
  const masks = mask === undefined ? MASKS.map((_, at) => at) : [mask];
  let best: { modules: boolean[][]; penalty: number } | null = null;
  for (const choice of masks) {
    const modules = draw(codewords, version, choice);
    const penalty = masks.length > 1 ? penaltyOf(modules) : 0;
    if (!best || penalty < best.penalty) best = { modules, penalty };
  }
  return best?.modules ?? null;
}

/** Bits of the mode and of the length. */
const headBits = (version: number): number => (version < 10 ? 12 : 20);

/** Modules for data and correction, without the patterns. */
function rawBits(version: number): number {
  let bits = (16 * version + 128) * version + 64;
  if (version < 2) return bits;
  const count = Math.floor(version / 7) + 2;
  bits -= (25 * count - 10) * count - 55;
  return version < 7 ? bits : bits - 36;
}

const dataBytes = (version: number): number =>
  Math.floor(rawBits(version) / 8) - (CORRECTION[version - 1] ?? 0) * (BLOCKS[version - 1] ?? 0);

/** The text behind its head, filled up to the size of the version. */
function fill(bytes: Uint8Array, version: number): number[] {
  let bits = `0100${bytes.length.toString(2).padStart(headBits(version) - 4, '0')}`;
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0');
  const capacity = dataBytes(version);
  bits += '0'.repeat(Math.min(4, capacity * 8 - bits.length));
  bits += '0'.repeat((8 - (bits.length % 8)) % 8);
  const data = (bits.match(/.{8}/g) ?? []).map((one) => Number.parseInt(one, 2));
  for (let pad = 0xec; data.length < capacity; pad ^= 0xec ^ 0x11) data.push(pad);
  return data;
}

/** Divides the data into blocks, adds the correction of each, and takes a codeword of each block in turn. */
function interleave(data: number[], version: number): number[] {
  const blocks = BLOCKS[version - 1] ?? 1;
  const correction = CORRECTION[version - 1] ?? 0;
  const raw = Math.floor(rawBits(version) / 8);
  const long = raw % blocks;
  const length = Math.floor(raw / blocks) - correction;
  const divisor = generator(correction);

  const parts: number[][] = [];
  const checks: number[][] = [];
  for (let block = 0, at = 0; block < blocks; block += 1) {
    const part = data.slice(at, (at += length + (block < blocks - long ? 0 : 1)));
    parts.push(part);
    checks.push(remainder(part, divisor));
  }
  const result: number[] = [];
  for (let at = 0; at <= length; at += 1) for (const part of parts) if (at < part.length) result.push(part[at] ?? 0);
  for (let at = 0; at < correction; at += 1) for (const check of checks) result.push(check[at] ?? 0);
  return result;
}

/** Multiplies in GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1. */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) product = (product << 1) ^ ((product >>> 7) * 0x11d) ^ (((b >>> bit) & 1) * a);
  return product;
}

function generator(degree: number): number[] {
  const result: number[] = Array.from({ length: degree }, (_, at) => (at === degree - 1 ? 1 : 0));
  for (let round = 0, root = 1; round < degree; round += 1, root = multiply(root, 2)) {
    for (let at = 0; at < degree; at += 1) result[at] = multiply(result[at] ?? 0, root) ^ (result[at + 1] ?? 0);
  }
  return result;
}

function remainder(data: number[], divisor: number[]): number[] {
  const result = divisor.map(() => 0);
  for (const byte of data) {
    const factor = byte ^ (result.shift() ?? 0);
    result.push(0);
    divisor.forEach((one, at) => (result[at] = (result[at] ?? 0) ^ multiply(one, factor)));
  }
  return result;
}

function draw(codewords: number[], version: number, mask: number): boolean[][] {
  const size = version * 4 + 17;
  const modules = Array.from({ length: size }, () => Array.from({ length: size }, () => false));
  const fixed = modules.map((row) => [...row]);
  const set = (x: number, y: number, dark: boolean) => {
    const row = modules[y];
    const mark = fixed[y];
    if (!row || !mark || x < 0 || x >= size) return;
    row[x] = dark;
    mark[x] = true;
  };
  const rings = (cx: number, cy: number, radius: number) => {
    for (let dy = -radius; dy <= radius; dy += 1) {
      for (let dx = -radius; dx <= radius; dx += 1) {
        const ring = Math.max(Math.abs(dx), Math.abs(dy));
        set(cx + dx, cy + dy, radius === 2 ? ring !== 1 : ring !== 2 && ring !== 4);
      }
    }
  };

  for (let at = 0; at < size; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]] as const) rings(x, y, 4);
  const places = alignments(version, size);
  const last = places.length - 1;
  places.forEach((x, column) =>
    places.forEach((y, row) => {
      const isFinder = (column === 0 && row === 0) || (column === 0 && row === last) || (column === last && row === 0);
      if (!isFinder) rings(x, y, 2);
    }),
  );

  const format = ((mask << 10) | checkBits(mask, 10, 0x537)) ^ 0x5412; // 00 stands for M
  for (let at = 0; at < 15; at += 1) {
    const dark = ((format >>> at) & 1) === 1;
    if (at < 8) {
      set(8, at < 6 ? at : at + 1, dark);
      set(size - 1 - at, 8, dark);
    } else {
      set(at === 8 ? 7 : 14 - at, 8, dark);
      set(8, size - 15 + at, dark);
    }
  }
  set(8, size - 8, true);
  if (version >= 7) {
    const bits = (version << 12) | checkBits(version, 12, 0x1f25);
    for (let at = 0; at < 18; at += 1) {
      const dark = ((bits >>> at) & 1) === 1;
      set(size - 11 + (at % 3), Math.floor(at / 3), dark);
      set(Math.floor(at / 3), size - 11 + (at % 3), dark);
    }
  }

  // Two columns at a time from the right, up and down, around the patterns.
  let bit = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step += 1) {
      const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        const row = modules[y];
        if (!row || fixed[y]?.[x]) continue;
        const dark = (((codewords[bit >>> 3] ?? 0) >>> (7 - (bit & 7))) & 1) === 1;
        row[x] = dark !== (MASKS[mask]?.(x, y) === 0);
        bit += 1;
      }
    }
  }
  return modules;
}

/** The remainder of a cyclic code, for the format and the version. */
function checkBits(value: number, length: number, polynomial: number): number {
  let rest = value;
  for (let at = 0; at < length; at += 1) rest = (rest << 1) ^ ((rest >>> (length - 1)) * polynomial);
  return rest;
}

function alignments(version: number, size: number): number[] {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.floor((version * 8 + count * 3 + 5) / (count * 4 - 4)) * 2;
  return [6, ...Array.from({ length: count - 1 }, (_, at) => size - 7 - at * step).reverse()];
}

/** How hard a code is to read: runs, blocks, false finders, and imbalance. */
function penaltyOf(modules: boolean[][]): number {
  const rows = modules.map((row) => row.map(Number).join(''));
  const columns = modules.map((_, x) => rows.map((row) => row[x]).join(''));
  let penalty = 0;
  for (const line of [...rows, ...columns]) {
    for (const run of line.match(/(.)\1{4,}/g) ?? []) penalty += run.length - 2;
    for (const pattern of ['10111010000', '00001011101']) {
      for (let at = line.indexOf(pattern); at >= 0; at = line.indexOf(pattern, at + 1)) penalty += 40;
    }
  }
  for (let y = 1; y < rows.length; y += 1) {
    for (let x = 1; x < rows.length; x += 1) {
      const four = `${rows[y - 1]?.slice(x - 1, x + 1)}${rows[y]?.slice(x - 1, x + 1)}`;
      if (four === '0000' || four === '1111') penalty += 3;
    }
  }
  const dark = rows.join('').replaceAll('0', '').length / rows.length ** 2;
  return penalty + Math.floor(Math.abs(dark - 0.5) * 20) * 10;
}
