// Thumbnails by contact sheets: the cells that rest in the view are asked for together.
import { Problem, isAbort, request, type FileRecord } from '../api/call';
import { me, onEnd } from '../session';

const REST_MS = 80;
const MOST = 40;
const WAIT_MS = 400;
const KEPT_BYTES = 32 * 1024 * 1024;

interface Sheet {
  blob: Blob;
  /** Cell by id and version. */
  cells: Map<string, number>;
  columns: number;
  side: number;
  used: number;
}

export const thumbSide = (): 200 | 400 => (devicePixelRatio > 1 ? 400 : 200);
const keyOf = (record: FileRecord): string => `${record.file_id}@${record.version}`;

/** Whether the server can make a picture of the file. */
export function hasPicture(record: FileRecord): boolean {
  if (record.width !== null) return true;
  return me.peek()?.features.converted_types.includes(record.mime_type) ?? false;
}

const sheets = new Set<Sheet>();
const failed = new Map<string, number>();
/** By canvas: a file can be shown at two places at once. */
const wanted = new Map<HTMLCanvasElement, { record: FileRecord; done: () => void }>();
let timer: ReturnType<typeof setTimeout> | undefined;
let clock = 0;
let running = 0;
let notBefore = 0;

function sheetOf(key: string): Sheet | null {
  for (const sheet of sheets) if (sheet.cells.has(key)) return sheet;
  return null;
}

/** Draws the picture of a record into a canvas as soon as it is here. Returns how to give up. */
export function want(record: FileRecord, canvas: HTMLCanvasElement, done: () => void): () => void {
  const place = { record, done };
  wanted.set(canvas, place);
  plan(sheetOf(keyOf(record)) ? 0 : REST_MS);
  return () => {
    if (wanted.get(canvas) === place) wanted.delete(canvas);
  };
}

function plan(delay: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => void work(), Math.max(delay, notBefore - Date.now()));
}

async function work(): Promise<void> {
  await drawKnown();
  if (running >= 2) return;
  const missing = new Map<string, FileRecord>();
  for (const { record } of wanted.values()) {
    const key = keyOf(record);
    if (!sheetOf(key) && (failed.get(key) ?? 0) < Date.now()) missing.set(key, record);
  }
  if (missing.size === 0) return;
  const now = [...missing.values()].slice(0, MOST);
  running += 1;
  try {
    await ask(now);
  } catch (error) {
    if (error instanceof Problem && (error.status === 503 || error.status === 429)) {
      notBefore = Date.now() + (error.retryAfter ?? 2) * 1000;
    } else if (!isAbort(error)) {
      for (const record of now) failed.set(keyOf(record), Date.now() + 30_000);
    }
  } finally {
    running -= 1;
  }
  await drawKnown();
  if (wanted.size > 0) plan(REST_MS);
}

async function ask(records: FileRecord[]): Promise<void> {
  const side = thumbSide();
  // 16 megapixels are the most that the server makes: 100 cells of 400.
  const response = await request('GET', '/sheets', {
    // Cells that are not made within this time stay empty, and are asked for again.
    query: { ids: records.map((one) => one.file_id).join(','), size: side, fit: 'cover', wait_ms: WAIT_MS },
    headers: { Accept: 'image/webp' },
  });
  const blob = await response.blob();
  const columns = Math.ceil(Math.sqrt(records.length));
  const numbers = (name: string) => new Set(response.headers.get(name)?.split(',').map(Number));
  const [pending, broken] = [numbers('Sheet-Pending'), numbers('Sheet-Failed')];
  const cells = new Map<string, number>();
  records.forEach((record, at) => {
    if (broken.has(at)) failed.set(keyOf(record), Date.now() + 300_000);
    else if (!pending.has(at)) cells.set(keyOf(record), at);
  });
  sheets.add({ blob, cells, columns, side, used: (clock += 1) });
  let total = [...sheets].reduce((sum, one) => sum + one.blob.size, 0);
  for (const sheet of [...sheets].sort((a, b) => a.used - b.used)) {
    if (total <= KEPT_BYTES || sheets.size <= 2) break;
    sheets.delete(sheet);
    total -= sheet.blob.size;
  }
}

async function drawKnown(): Promise<void> {
  const bySheet = new Map<Sheet, HTMLCanvasElement[]>();
  for (const [canvas, { record }] of wanted) {
    const sheet = sheetOf(keyOf(record));
    if (sheet) bySheet.set(sheet, [...(bySheet.get(sheet) ?? []), canvas]);
  }
  for (const [sheet, canvases] of bySheet) {
    let picture: ImageBitmap;
    try {
      picture = await createImageBitmap(sheet.blob);
    } catch {
      sheets.delete(sheet);
      for (const key of sheet.cells.keys()) failed.set(key, Date.now() + 30_000);
      continue;
    }
    sheet.used = clock += 1;
    for (const canvas of canvases) {
      const place = wanted.get(canvas);
      const cell = place && sheet.cells.get(keyOf(place.record));
      if (!place || cell === undefined) continue;
      wanted.delete(canvas);
      draw(canvas, picture, cell, sheet);
      place.done();
    }
    picture.close();
  }
}

function draw(canvas: HTMLCanvasElement, picture: ImageBitmap, cell: number, { columns, side }: Sheet): void {
  const x = (cell % columns) * side;
  const y = Math.floor(cell / columns) * side;
  if (canvas.width !== side) canvas.width = canvas.height = side;
  const context = canvas.getContext('2d');
  context?.clearRect(0, 0, side, side);
  context?.drawImage(picture, x, y, side, side, 0, 0, side, side);
}

onEnd(() => {
  sheets.clear();
  wanted.clear();
  failed.clear();
  clearTimeout(timer);
});
