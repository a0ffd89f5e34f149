// Compares screenshots with kept pictures so that another build of the browser and other hinting of fonts do not count:
// both are reduced to blocks of 8 × 8 pixels, each block gets the mean colour of itself and the eight around it, and the
// blocks that differ clearly are counted. Letters that moved by a pixel or two change such a mean by less than 8.

const SIDE = 8;
/** Two blocks differ if one of their colours is further apart than this, of 255. */
const APART = 8;
/** At most this share of the blocks may differ. */
export const MOST = 0.01;

/** Runs in the page. Returns the number of blocks and of those that differ, and a picture that shows them in red. */
async function compareIn({ one, other, SIDE, APART }) {
  const load = async (url) => {
    const picture = new Image();
    picture.src = url;
    await picture.decode();
    return picture;
  };
  const [left, right] = await Promise.all([load(one), load(other)]);
  const { width, height } = left;
  if (right.width !== width || right.height !== height) return { blocks: 1, differ: 1, share: 1, picture: null };
  const pixels = (picture) => {
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    const pen = canvas.getContext('2d', { willReadFrequently: true });
    pen.drawImage(picture, 0, 0);
    return { canvas, pen, data: pen.getImageData(0, 0, width, height).data };
  };
  const columns = Math.floor(width / SIDE);
  const rows = Math.floor(height / SIDE);
  /** The mean of each colour over the blocks around each block. */
  const smooth = (data) => {
    const sums = new Float64Array(columns * rows * 3);
    for (let y = 0; y < rows * SIDE; y += 1) {
      for (let x = 0; x < columns * SIDE; x += 1) {
        const block = Math.floor(y / SIDE) * columns + Math.floor(x / SIDE);
        for (let colour = 0; colour < 3; colour += 1) sums[block * 3 + colour] += data[(y * width + x) * 4 + colour];
      }
    }
    return sums.map((_, at) => {
      const [colour, column, row] = [at % 3, Math.floor(at / 3) % columns, Math.floor(at / 3 / columns)];
      let [sum, blocks] = [0, 0];
      for (let y = Math.max(0, row - 1); y <= Math.min(rows - 1, row + 1); y += 1) {
        for (let x = Math.max(0, column - 1); x <= Math.min(columns - 1, column + 1); x += 1) {
          sum += sums[(y * columns + x) * 3 + colour];
          blocks += 1;
        }
      }
      return sum / blocks / (SIDE * SIDE);
    });
  };
  const [a, b] = [pixels(left), pixels(right)];
  const [was, is] = [smooth(a.data), smooth(b.data)];
  let differ = 0;
  b.pen.fillStyle = 'rgb(255 0 0 / 45%)';
  for (let block = 0; block < columns * rows; block += 1) {
    if ([0, 1, 2].every((colour) => Math.abs(was[block * 3 + colour] - is[block * 3 + colour]) <= APART)) continue;
    differ += 1;
    b.pen.fillRect((block % columns) * SIDE, Math.floor(block / columns) * SIDE, SIDE, SIDE);
  }
  return { blocks: columns * rows, differ, share: differ / (columns * rows), picture: b.canvas.toDataURL('image/png') };
}

const url = (type, bytes) => `data:image/${type};base64,${bytes.toString('base64')}`;
export const bytesOf = (text) => Buffer.from(text.slice(text.indexOf(',') + 1), 'base64');

/** Compares a kept WebP with a PNG, in a page of playwright. */
export function compare(page, kept, shot) {
  return page.evaluate(compareIn, { one: url('webp', kept), other: url('png', shot), SIDE, APART });
}

/** Makes a WebP of a PNG, in a page of playwright. */
export async function webp(page, png, quality) {
  return bytesOf(await page.evaluate(async ({ png, quality }) => {
    const picture = new Image();
    picture.src = png;
    await picture.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: picture.width, height: picture.height });
    canvas.getContext('2d').drawImage(picture, 0, 0);
    return canvas.toDataURL('image/webp', quality);
  }, { png: url('png', png), quality }));
}
