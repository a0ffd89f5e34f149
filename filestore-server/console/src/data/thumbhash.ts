// Paints a ThumbHash (evanw.github.io/thumbhash): a blurred picture of about 25 bytes. Decoding follows its description.

export interface Painted {
  width: number;
  height: number;
  rgba: Uint8ClampedArray<ArrayBuffer>;
}

function bytesOf(base64: string): number[] | null {
  try {
    const bytes = [...atob(base64)].map((character) => character.charCodeAt(0));
    return bytes.length >= 5 ? bytes : null;
  } catch {
    return null;
  }
}

/** Decodes a hash into a small picture, or returns null if it is none. */
export function paint(base64: string, longest = 32): Painted | null {
  const hash = bytesOf(base64);
  if (!hash) return null;
  const at = (index: number) => hash[index] ?? 0;
  const head = at(0) | (at(1) << 8) | (at(2) << 16);
  const tail = at(3) | (at(4) << 8);
  const lightness = (head & 63) / 63;
  const dcP = ((head >> 6) & 63) / 31.5 - 1;
  const dcQ = ((head >> 12) & 63) / 31.5 - 1;
  const scaleL = ((head >> 18) & 31) / 31;
  const hasAlpha = head >> 23 !== 0;
  const scaleP = ((tail >> 3) & 63) / 63;
  const scaleQ = ((tail >> 9) & 63) / 63;
  const isLandscape = tail >> 15 !== 0;
  const lx = Math.max(3, isLandscape ? (hasAlpha ? 5 : 7) : tail & 7);
  const ly = Math.max(3, isLandscape ? tail & 7 : hasAlpha ? 5 : 7);
  const dcA = hasAlpha ? (at(5) & 15) / 15 : 1;
  const scaleA = (at(5) >> 4) / 15;

  const start = hasAlpha ? 6 : 5;
  let index = 0;
  const channel = (nx: number, ny: number, scale: number): number[] => {
    const waves: number[] = [];
    for (let cy = 0; cy < ny; cy += 1) {
      for (let cx = cy ? 0 : 1; cx * ny < nx * (ny - cy); cx += 1) {
        const nibble = (at(start + (index >> 1)) >> ((index & 1) << 2)) & 15;
        waves.push((nibble / 7.5 - 1) * scale);
        index += 1;
      }
    }
    return waves;
  };
  const wavesL = channel(lx, ly, scaleL);
  const wavesP = channel(3, 3, scaleP * 1.25);
  const wavesQ = channel(3, 3, scaleQ * 1.25);
  const wavesA = hasAlpha ? channel(5, 5, scaleA) : null;

  const ratio = ratioOf(hash);
  const width = Math.max(1, Math.round(ratio > 1 ? longest : longest * ratio));
  const height = Math.max(1, Math.round(ratio > 1 ? longest / ratio : longest));
  const rgba = new Uint8ClampedArray(new ArrayBuffer(width * height * 4));
  for (let y = 0, to = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1, to += 4) {
      const fx = Array.from({ length: Math.max(lx, hasAlpha ? 5 : 3) }, (_, c) => Math.cos((Math.PI / width) * (x + 0.5) * c));
      const fy = Array.from({ length: Math.max(ly, hasAlpha ? 5 : 3) }, (_, c) => Math.cos((Math.PI / height) * (y + 0.5) * c));
      const sum = (waves: number[], nx: number, ny: number): number => {
        let value = 0;
        for (let cy = 0, wave = 0; cy < ny; cy += 1) {
          for (let cx = cy ? 0 : 1; cx * ny < nx * (ny - cy); cx += 1, wave += 1) {
            value += (waves[wave] ?? 0) * (fx[cx] ?? 0) * (fy[cy] ?? 0) * 2;
          }
        }
        return value;
      };
      const l = lightness + sum(wavesL, lx, ly);
      const p = dcP + sum(wavesP, 3, 3);
      const q = dcQ + sum(wavesQ, 3, 3);
      const a = wavesA ? dcA + sum(wavesA, 5, 5) : 1;
      const b = l - (2 / 3) * p;
      const r = (3 * l - b + q) / 2;
      const g = r - q;
      rgba[to] = 255 * r;
      rgba[to + 1] = 255 * g;
      rgba[to + 2] = 255 * b;
      rgba[to + 3] = 255 * a;
    }
  }
  return { width, height, rgba };
}

function ratioOf(hash: number[]): number {
  const header = hash[3] ?? 0;
  const hasAlpha = ((hash[2] ?? 0) & 128) !== 0;
  const isLandscape = ((hash[4] ?? 0) & 128) !== 0;
  const lx = isLandscape ? (hasAlpha ? 5 : 7) : header & 7;
  const ly = isLandscape ? header & 7 : hasAlpha ? 5 : 7;
  return Math.max(1, lx) / Math.max(1, ly);
}

/** The average colour, for a cell that flies past. */
export function average(base64: string): string | null {
  const hash = bytesOf(base64);
  if (!hash) return null;
  const head = (hash[0] ?? 0) | ((hash[1] ?? 0) << 8) | ((hash[2] ?? 0) << 16);
  const l = (head & 63) / 63;
  const p = ((head >> 6) & 63) / 31.5 - 1;
  const q = ((head >> 12) & 63) / 31.5 - 1;
  const b = l - (2 / 3) * p;
  const r = (3 * l - b + q) / 2;
  const g = r - q;
  const part = (value: number) => Math.round(255 * Math.min(1, Math.max(0, value)));
  return `rgb(${part(r)} ${part(g)} ${part(b)})`;
}
