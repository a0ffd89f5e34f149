// Compares screenshots with kept pictures so that another build of the browser and other hinting of fonts do not count:
// both are reduced to the mean colour of each block of 8 × 8 pixels, and the blocks that differ clearly are counted.

const SIDE = 8;
/** Two blocks differ if one of their colours is further apart than this, of 255. */
const APART = 14;
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
  const [a, b] = [pixels(left), pixels(right)];
  const columns = Math.floor(width / SIDE);
  const rows = Math.floor(height / SIDE);
  let differ = 0;
  b.pen.fillStyle = 'rgb(255 0 0 / 45%)';
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const sums = [0, 0, 0];
      for (let y = row * SIDE; y < (row + 1) * SIDE; y += 1) {
        for (let at = (y * width + column * SIDE) * 4, end = at + SIDE * 4; at < end; at += 4) {
          for (let colour = 0; colour < 3; colour += 1) sums[colour] += a.data[at + colour] - b.data[at + colour];
        }
      }
      if (sums.every((sum) => Math.abs(sum) <= APART * SIDE * SIDE)) continue;
      differ += 1;
      b.pen.fillRect(column * SIDE, row * SIDE, SIDE, SIDE);
    }
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
