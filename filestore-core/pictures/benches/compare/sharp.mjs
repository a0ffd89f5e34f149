// sharp's side of the comparison: answers one JSON request per line of standard input.
//
// The pipeline is the one a careful user of sharp would write for the same variant: as many threads as
// COMPARE_SHARP_THREADS says, no cache, colours to sRGB and metadata dropped (sharp's defaults), the default effort.
//
// COMPARE_SHARP names the directory whose node_modules holds sharp.

import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { readFileSync, writeFileSync } from 'node:fs';

const sharp = createRequire(`${process.env.COMPARE_SHARP}/`)('sharp');
sharp.concurrency(Number(process.env.COMPARE_SHARP_THREADS));
sharp.cache(false);

const encoded = ({ path, fit, quality }, size) =>
  sharp(path)
    .rotate()
    .resize({ width: size, height: size, fit, withoutEnlargement: true })
    .webp({ quality })
    .toBuffer();

// From the path to the file's bytes in memory: wall time, and the processor time of all threads.
async function timed(work) {
  const cpu = process.cpuUsage();
  const start = process.hrtime.bigint();
  const result = await work();
  const wall_ns = Number(process.hrtime.bigint() - start);
  const used = process.cpuUsage(cpu);
  return { result, wall_ns, cpu_ns: (used.user + used.system) * 1000 };
}

const peakKib = () => Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);

// The formats of the comparison, as a careful user would write them.
const formats = {
  webp: (image) => image.webp({ quality: 80 }),
  lossless: (image) => image.webp({ lossless: true }),
  png: (image) => image.png(),
  filtered: (image) => image.png({ adaptiveFiltering: true }),
  palette: (image) => image.png({ palette: true }),
  gif: (image) => image.gif(),
  tiff: (image) => image.tiff({ compression: 'lzw', predictor: 'horizontal' }),
};

const answers = {
  version: () => ({ sharp: sharp.versions.sharp, vips: sharp.versions.vips, webp: sharp.versions.webp }),

  async make(request) {
    const { result, ...times } = await timed(() => encoded(request, request.size));
    if (request.out) writeFileSync(request.out, result);
    return { ...times, bytes: result.length };
  },

  async convert({ path, format, out }) {
    await formats[format](sharp(path).rotate().toColourspace('srgb')).toFile(out);
    return {};
  },

  // `out` is a directory for the results, `<size>.webp`.
  async seven(request) {
    const { result, ...times } = await timed(async () => {
      const made = [];
      for (const size of request.sizes) made.push(await encoded(request, size));
      return made;
    });
    if (request.out) result.forEach((bytes, at) => writeFileSync(`${request.out}/${request.sizes[at]}.webp`, bytes));
    return times;
  },

  // Meaningful in a process that has made nothing before.
  async peak(request) {
    writeFileSync('/proc/self/clear_refs', '5');
    const before = peakKib();
    await encoded(request, request.size);
    return { grown_kib: peakKib() - before };
  },

  async facts({ path }) {
    const { isProgressive, chromaSubsampling, autoOrient } = await sharp(path).metadata();
    return { progressive: !!isProgressive, sampling: chromaSubsampling ?? '-', ...autoOrient };
  },

  // Variants over HTTP, by the path of the photograph.
  async serve({ quality }) {
    const server = createServer(async (request, response) => {
      const { pathname, searchParams } = new URL(request.url, 'http://localhost');
      const path = decodeURIComponent(pathname);
      const made = await encoded({ path, fit: searchParams.get('fit'), quality }, Number(searchParams.get('size')));
      response.writeHead(200, { 'Content-Type': 'image/webp', 'Content-Length': made.length });
      response.end(made);
    });
    // One connection is kept for all.
    server.keepAliveTimeout = 0;
    await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
    return { port: server.address().port };
  },

  // The picture, whole or of so many megapixels, upright, in sRGB, three bytes a pixel: what the reference
  // and the hundred JPEGs are made from.
  async pixels({ path, out, megapixels }) {
    let raw = sharp(path).rotate().removeAlpha().toColourspace('srgb').raw();
    if (megapixels) {
      const { width, height } = (await sharp(path).metadata()).autoOrient;
      raw = raw.resize({ width: Math.floor(Math.sqrt((megapixels * 1e6 * width) / height)) });
    }
    const { data, info } = await raw.toBuffer({ resolveWithObject: true });
    if (info.channels !== 3) throw new Error(`${path} has ${info.channels} channels`);
    writeFileSync(out, data);
    return { width: info.width, height: info.height };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = await answers[request.op](request);
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
