// Paints pictures in a browser's canvas, so that the tests need no photographs: landscapes, boards, blossoms, each by
// its number. The same number gives the same picture.

/** Runs in the page. Returns a data URL. */
function paintIn({ seed, width, height, type, quality }) {
  let state = (seed * 2654435761 + 97) >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
  const between = (low, high) => low + random() * (high - low);
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext('2d');
  const hue = between(0, 360);

  function ridge(base, rough, colour) {
    pen.beginPath();
    pen.moveTo(0, height);
    const waves = Array.from({ length: 7 }, (_, at) => [between(0.4, 1.6) * (at + 1), between(0, 7), rough / (at + 1)]);
    for (let x = 0; x <= width; x += 4) {
      const y = waves.reduce((sum, [f, shift, size]) => sum + Math.sin((x / width) * f * 6 + shift) * size, 0);
      pen.lineTo(x, base + y * height);
    }
    pen.lineTo(width, height);
    pen.fillStyle = colour;
    pen.fill();
  }

  function landscape() {
    const warm = random() < 0.6;
    const sky = pen.createLinearGradient(0, 0, 0, height * 0.62);
    const turn = between(-14, 14);
    const stops = warm
      ? [[0, 232, 48, 34], [0.42, 275, 36, 50], [0.72, 338, 58, 65], [0.92, 22, 90, 70], [1, 42, 95, 76]]
      : [[0, 212, 62, 46], [0.6, 200, 58, 64], [1, 186, 46, 80]];
    for (const [at, tone, colourful, light] of stops) sky.addColorStop(at, `hsl(${tone + turn} ${colourful}% ${light + turn / 4}%)`);
    pen.fillStyle = sky;
    pen.fillRect(0, 0, width, height);
    const [x, y, size] = [between(0.2, 0.8) * width, between(0.3, 0.55) * height, between(0.03, 0.07) * width];
    const glow = pen.createRadialGradient(x, y, 0, x, y, size * 9);
    glow.addColorStop(0, 'rgb(255 244 214 / 95%)');
    glow.addColorStop(0.11, 'rgb(255 238 200 / 90%)');
    glow.addColorStop(0.13, 'rgb(255 225 170 / 35%)');
    glow.addColorStop(1, 'rgb(255 220 160 / 0%)');
    pen.fillStyle = glow;
    pen.fillRect(0, 0, width, height);
    for (let cloud = 0; cloud < 26; cloud += 1) {
      pen.beginPath();
      pen.ellipse(between(0, width), between(0.04, 0.42) * height, between(0.06, 0.3) * width, between(0.004, 0.02) * height, 0, 0, 7);
      pen.fillStyle = `rgb(255 ${between(225, 250)} ${between(215, 245)} / ${between(3, 13)}%)`;
      pen.fill();
    }
    const base = warm ? between(250, 345) : between(120, 230);
    for (let layer = 0; layer < 5; layer += 1) {
      ridge(height * (0.5 + layer * 0.09), 0.05 - layer * 0.004, `hsl(${base - layer * 9} ${24 + layer * 5}% ${54 - layer * 10}%)`);
    }
    if (random() < 0.55) {
      const shore = height * between(0.72, 0.8);
      pen.save();
      pen.globalAlpha = 0.82;
      pen.scale(1, -0.42);
      pen.drawImage(canvas, 0, shore * 0.2, width, shore * 0.8, 0, -shore / 0.42 - shore * 0.8, width, shore * 0.8);
      pen.restore();
      for (let line = 0; line < 260; line += 1) {
        pen.fillStyle = `rgb(255 255 255 / ${between(1, 9)}%)`;
        pen.fillRect(between(0, width), between(shore, height), between(0.01, 0.12) * width, between(1, 3));
      }
    }
  }

  function boards() {
    const count = Math.round(between(5, 12));
    for (let board = 0; board < count; board += 1) {
      const shade = pen.createLinearGradient((board * width) / count, 0, ((board + 1) * width) / count, 0);
      const tone = hue + between(-18, 18);
      const light = between(38, 66);
      shade.addColorStop(0, `hsl(${tone} 34% ${light}%)`);
      shade.addColorStop(0.92, `hsl(${tone} 34% ${light - 7}%)`);
      shade.addColorStop(1, `hsl(${tone} 40% ${light - 26}%)`);
      pen.fillStyle = shade;
      pen.fillRect((board * width) / count, 0, width / count + 1, height);
    }
    for (let grain = 0; grain < 900; grain += 1) {
      pen.fillStyle = `hsl(${hue} 30% ${between(15, 80)}% / ${between(2, 9)}%)`;
      pen.fillRect(between(0, width), between(0, height), between(1, 4), between(0.04, 0.4) * height);
    }
  }

  function facets() {
    for (let at = 0; at < 160; at += 1) {
      const [x, y] = [between(-0.2, 1.1) * width, between(-0.2, 1.1) * height];
      pen.beginPath();
      pen.moveTo(x, y);
      for (let corner = 0; corner < 3; corner += 1) {
        pen.lineTo(x + between(-0.3, 0.3) * width, y + between(-0.4, 0.4) * height);
      }
      pen.fillStyle = `hsl(${hue + between(-55, 55)} ${between(45, 85)}% ${between(22, 68)}% / ${between(35, 90)}%)`;
      pen.fill();
    }
  }

  function blossoms() {
    pen.fillStyle = `hsl(${between(80, 150)} 34% 17%)`;
    pen.fillRect(0, 0, width, height);
    for (let blur = 0; blur < 90; blur += 1) {
      const [x, y, size] = [between(0, width), between(0, height), between(0.02, 0.14) * width];
      const spot = pen.createRadialGradient(x, y, 0, x, y, size);
      spot.addColorStop(0, `hsl(${between(60, 150)} 45% ${between(28, 60)}% / 55%)`);
      spot.addColorStop(1, 'transparent');
      pen.fillStyle = spot;
      pen.fillRect(0, 0, width, height);
    }
    for (let flower = 0; flower < 9; flower += 1) {
      const [x, y, size] = [between(0.05, 0.95) * width, between(0.1, 0.95) * height, between(0.03, 0.12) * width];
      const petals = Math.round(between(5, 13));
      for (let petal = 0; petal < petals; petal += 1) {
        pen.save();
        pen.translate(x, y);
        pen.rotate((petal / petals) * Math.PI * 2 + between(-0.1, 0.1));
        const shade = pen.createLinearGradient(0, 0, size, 0);
        shade.addColorStop(0, `hsl(${hue} 80% 38%)`);
        shade.addColorStop(1, `hsl(${hue + 20} 88% 70%)`);
        pen.fillStyle = shade;
        pen.beginPath();
        pen.ellipse(size * 0.6, 0, size * 0.52, size * 0.2, 0, 0, 7);
        pen.fill();
        pen.restore();
      }
      pen.fillStyle = 'hsl(42 90% 52%)';
      pen.beginPath();
      pen.arc(x, y, size * 0.22, 0, 7);
      pen.fill();
    }
  }

  [landscape, landscape, landscape, blossoms, landscape, facets, boards][seed % 7]();
  const grain = pen.createImageData(256, 256);
  for (let at = 0; at < grain.data.length; at += 4) {
    const value = random() * 255;
    grain.data.set([value, value, value, 9], at);
  }
  const tile = document.createElement('canvas');
  tile.width = tile.height = 256;
  tile.getContext('2d').putImageData(grain, 0, 0);
  pen.fillStyle = pen.createPattern(tile, 'repeat');
  pen.fillRect(0, 0, width, height);
  return canvas.toDataURL(type, quality);
}

/** Paints a picture in a page of playwright, and returns its bytes. */
export async function paint(page, seed, { width = 1280, height = 800, type = 'image/jpeg', quality = 0.86 } = {}) {
  const url = await page.evaluate(paintIn, { seed, width, height, type, quality });
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64');
}
