// A listing that goes to its end by cursor, over any number of files.
//
// Pages of 200 records. At most 20 of them are kept around the view. Of the others only the cursor, the number of
// records and the runs of days are kept, so scrolling back asks again. Each record that lived throughout appears
// exactly once: a page that is asked for again ends where it ended before.
import { batch, signal } from '@preact/signals';
import { call, isAbort, type FileRecord } from '../api/call';
import { utc } from '../text/times';

export const PAGE = 200;
const KEPT = 20;
/** So many records before the end of what is here, the next page is asked for: at rest, and while the view flies. */
const AHEAD = 300;
const FLYING = 2000;
/** Short and empty pages that are followed without asking. */
const PATIENCE = 20;

export interface Filter {
  organization: string;
  sub_system?: string;
  mime_type?: string;
  name_contains?: string;
  created_after?: string;
  created_before?: string;
  sync_status?: string;
  metadata: [key: string, value: string][];
  /** Files in the trash instead of live files. */
  deleted?: boolean;
}

export const filterKey = (filter: Filter): string => JSON.stringify(filter);

/** Consecutive records of one day. */
export interface Run {
  day: string;
  count: number;
}

interface Page {
  cursor: string | null;
  count: number;
  items: FileRecord[] | null;
  runs: Run[];
  /** The time of its first record. */
  since: string | null;
  /** Where the page ends: the time of its last record, and the ids of that millisecond. */
  until: { at: string; ids: string[] } | null;
  /** When the view needed it last, to know which page goes first. */
  used: number;
  loading: boolean;
}

/** Whether a record is among what a filter lists, as the server decides it. */
export function admits(filter: Filter, record: FileRecord): boolean {
  const { sub_system, mime_type, name_contains, created_after, created_before, sync_status, metadata } = filter;
  const at = Date.parse(record.created_at);
  return record.organization_id === filter.organization && (record.purge_status !== null) === (filter.deleted === true)
    && (!sub_system || sub_system === record.sub_system)
    && (!mime_type || mime_type.toLowerCase() === record.mime_type.split(';')[0]?.trim().toLowerCase())
    && (!name_contains || record.original_name.toLowerCase().includes(name_contains.toLowerCase()))
    && (!created_after || at >= Date.parse(created_after)) && (!created_before || at < Date.parse(created_before))
    && (!sync_status || sync_status === record.sync_status)
    && metadata.every(([key, value]) => String((record.metadata as Record<string, unknown> | null)?.[key]) === value);
}

/** The calendar day of a time, in the zone that the reader chose: `2026-11-27`. */
export function dayOf(time: string): string {
  if (utc.peek()) return time.slice(0, 10);
  const date = new Date(time);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

function runsOf(items: readonly FileRecord[]): Run[] {
  const runs: Run[] = [];
  for (const item of items) {
    const day = dayOf(item.created_at);
    const last = runs[runs.length - 1];
    if (last?.day === day) last.count += 1;
    else runs.push({ day, count: 1 });
  }
  return runs;
}

/** The time by which a listing is sorted: the trash by deletion, all else by creation. */
const timeOf = (item: FileRecord, filter: Filter): string => (filter.deleted ? item.deleted_at : null) ?? item.created_at;

/** Where a page begins and ends. */
function boundsOf(items: readonly FileRecord[], filter: Filter): Pick<Page, 'since' | 'until'> {
  const [first, last] = [items[0], items[items.length - 1]];
  if (!first || !last) return { since: null, until: null };
  const at = timeOf(last, filter);
  return { since: timeOf(first, filter), until: { at, ids: items.filter((one) => timeOf(one, filter) === at).map((one) => one.file_id) } };
}

export class Listing {
  /** Counts every change, for what is drawn from this listing. */
  readonly version = signal(0);
  /** True when the last page was seen, so that `count` is the whole. */
  readonly complete = signal(false);
  readonly loading = signal(false);
  readonly error = signal<unknown>(null);
  /** Set if many pages in turn had nothing: how many files the server has looked at since the last record. */
  readonly lookedAt = signal<number | null>(null);
  /** New files above the first record, which the view has not let in. */
  readonly above = signal<ReadonlySet<string>>(new Set());

  readonly filter: Filter;
  /** False once records may have gone from pages that are not here, or come back to them: `count` is not exact then. */
  isExact = true;
  #pages: Page[] = [];
  #starts: number[] = [];
  #next: string | null = null;
  #total = 0;
  #clock = 0;
  #wanted = 0;
  #ahead = AHEAD;
  #looked = 0;
  #end = new AbortController();
  #top: Promise<number> | null = null;
  #merged: Run[] | null = null;

  constructor(filter: Filter) {
    this.filter = filter;
  }

  /** Number of records so far. */
  get count(): number {
    return this.#total;
  }

  /** True before the first reply. */
  get isFresh(): boolean {
    return this.#pages.length === 0 && !this.complete.peek();
  }

  close(): void {
    this.#end.abort(new DOMException('the listing was left', 'AbortError'));
  }

  /** The runs of days over all records so far. */
  runs(): Run[] {
    if (this.#merged) return this.#merged;
    const merged: Run[] = [];
    for (const page of this.#pages) {
      for (const run of page.runs) {
        const last = merged[merged.length - 1];
        if (last?.day === run.day) last.count += run.count;
        else merged.push({ ...run });
      }
    }
    return (this.#merged = merged);
  }

  /** The record at a place, or null while its page is not here. */
  at(index: number): FileRecord | null {
    const number = this.#pageOf(index);
    const page = this.#pages[number];
    return page?.items?.[index - (this.#starts[number] ?? 0)] ?? null;
  }

  /** Where a record is, if its page is here. */
  indexOf(id: string): number {
    for (const [number, page] of this.#pages.entries()) {
      const at = page.items?.findIndex((one) => one.file_id === id) ?? -1;
      if (at >= 0) return (this.#starts[number] ?? 0) + at;
    }
    return -1;
  }

  /** All records that are here, in order. */
  *loaded(): Generator<FileRecord> {
    for (const page of this.#pages) if (page.items) yield* page.items;
  }

  /** Number of records that are here. */
  get loadedCount(): number {
    return this.#pages.reduce((sum, page) => sum + (page.items?.length ?? 0), 0);
  }

  /** Says which records the view needs. Asks for what is missing, and lets go of what is far. */
  need(from: number, to: number, flying = false): void {
    this.#clock += 1;
    this.#ahead = flying ? FLYING : AHEAD;
    const first = this.#pageOf(Math.max(0, from));
    const last = this.#pageOf(Math.max(0, to));
    for (let number = first; number <= last; number += 1) {
      const page = this.#pages[number];
      if (!page) continue;
      page.used = this.#clock;
      if (!page.items && !flying) void this.#again(page);
    }
    this.#wanted = to;
    if (to >= this.#total - this.#ahead) void this.more();
    this.#forget();
  }

  /** Asks for the next page. Follows short pages by itself. */
  async more(): Promise<void> {
    if (this.loading.peek() || this.complete.peek() || this.error.peek() !== null || this.lookedAt.peek() !== null) return;
    this.loading.value = true;
    try {
      for (let empty = 0, told = Date.now(); ; ) {
        const pages = this.#pages;
        const { items, next_cursor } = await this.#ask(this.#next);
        // Meanwhile the listing began again.
        if (pages !== this.#pages) {
          if (this.complete.peek()) return;
          continue;
        }
        if (items.length > 0 || this.#pages.length === 0) {
          this.#pages.push({
            cursor: this.#next, count: items.length, items, runs: runsOf(items), ...boundsOf(items, this.filter),
            used: this.#clock, loading: false,
          });
        }
        empty += items.length < PAGE / 10 ? 1 : 0;
        this.#next = next_cursor;
        // What is drawn hears of the first page at once, and of many in a row ten times a second.
        const isTold = this.#pages.length <= 2 || Date.now() - told > 100;
        if (isTold) told = Date.now();
        this.#changed(isTold);
        this.#forget();
        if (next_cursor === null) {
          this.complete.value = true;
          return;
        }
        if (items.length >= PAGE / 10 && this.#wanted < this.#total - this.#ahead) return;
        if (items.length >= PAGE / 10) empty = this.#looked = 0;
        if (empty >= PATIENCE) {
          this.lookedAt.value = this.#looked += empty * 5000;
          return;
        }
      }
    } catch (error) {
      if (!isAbort(error)) this.error.value = error;
    } finally {
      batch(() => {
        this.loading.value = false;
        this.version.value += 1;
      });
    }
  }

  /** Goes on after an error or after many empty pages. */
  retry(): void {
    batch(() => {
      this.error.value = null;
      this.lookedAt.value = null;
    });
    void this.more();
    this.version.value += 1;
  }

  /** Takes records away: they were deleted, restored or purged. */
  remove(ids: ReadonlySet<string>): void {
    let changed = false;
    for (const page of this.#pages) {
      if (!page.items) {
        this.isExact = false;
        continue;
      }
      const kept = page.items.filter((one) => !ids.has(one.file_id));
      if (kept.length === page.items.length) continue;
      changed = true;
      page.items = kept;
      page.count = kept.length;
      page.runs = runsOf(kept);
    }
    if ([...ids].some((id) => this.above.peek().has(id))) {
      this.above.value = new Set([...this.above.peek()].filter((id) => !ids.has(id)));
    }
    if (changed) this.#changed();
  }

  /** Puts records back where they were, as far as their page is here. */
  insert(records: readonly FileRecord[]): void {
    if (records.length > 200) {
      void this.reload();
      return;
    }
    for (const record of records) {
      if (this.indexOf(record.file_id) >= 0) continue;
      const time = timeOf(record, this.filter);
      const page = this.#pages.find((one, number) => {
        const isLast = number === this.#pages.length - 1;
        return one.until === null || one.until.at <= time || (isLast && this.complete.peek());
      });
      if (!page?.items) {
        this.isExact = false;
        continue;
      }
      const at = page.items.findIndex((one) => timeOf(one, this.filter) < time);
      page.items = at < 0 ? [...page.items, record] : page.items.toSpliced(at, 0, record);
      page.count = page.items.length;
      page.runs = runsOf(page.items);
      if (page.since === null || page.since < time) page.since = time;
      page.until ??= boundsOf(page.items, this.filter).until;
    }
    this.#changed();
  }

  /** Replaces a record by its newer form. */
  update(record: FileRecord): void {
    for (const page of this.#pages) {
      const at = page.items?.findIndex((one) => one.file_id === record.file_id) ?? -1;
      if (at < 0 || !page.items) continue;
      page.items = page.items.with(at, record);
      this.version.value += 1;
      return;
    }
  }

  /** Lets the new files in at the top. Returns how many there were. A second call waits for the first. */
  head(): Promise<number> {
    this.#top ??= this.#head().finally(() => (this.#top = null));
    return this.#top;
  }

  async #head(): Promise<number> {
    const known = new Set(this.#pages[0]?.items?.map((one) => one.file_id));
    const first = this.#pages[0];
    if (!first || first.count === 0 || !first.items) {
      await this.reload();
      return 0;
    }
    const newest = first.items[0] ? timeOf(first.items[0], this.filter) : '';
    try {
      const { items } = await this.#ask(null);
      const border = items.findIndex((one) => known.has(one.file_id) || timeOf(one, this.filter) < newest);
      if (border < 0) {
        // More than a page came in between: begin again at the top.
        await this.reload();
        return this.#total;
      }
      const fresh = items.slice(0, border);
      this.above.value = new Set();
      if (fresh.length === 0) return 0;
      // The same, cut at the border, for its cursor: with it the page can be asked for again.
      const cut = await this.#ask(null, fresh.length);
      if (cut.items.length !== fresh.length || cut.items.some((one, at) => one.file_id !== fresh[at]?.file_id)) {
        return this.#head();
      }
      // Meanwhile the listing may have begun again, or a record may have come back by an event.
      if (this.#pages[0] !== first || fresh.some((one) => this.indexOf(one.file_id) >= 0)) {
        await this.reload();
        return 0;
      }
      first.cursor = cut.next_cursor;
      this.#pages.unshift({
        cursor: null, count: fresh.length, items: fresh, runs: runsOf(fresh), ...boundsOf(fresh, this.filter),
        used: this.#clock, loading: false,
      });
      this.#changed();
      return fresh.length;
    } catch (error) {
      if (!isAbort(error)) this.error.value = error;
      return 0;
    }
  }

  /** Begins again at the top. What is shown stays until the reply. */
  async reload(): Promise<void> {
    try {
      const { items, next_cursor } = await this.#ask(null);
      batch(() => {
        this.#pages = [{
          cursor: null, count: items.length, items, runs: runsOf(items), ...boundsOf(items, this.filter), used: this.#clock, loading: false,
        }];
        this.#next = next_cursor;
        this.complete.value = next_cursor === null;
        this.error.value = null;
        this.lookedAt.value = null;
        this.#looked = 0;
        this.isExact = true;
        this.above.value = new Set();
        this.#changed();
      });
    } catch (error) {
      if (!isAbort(error)) this.error.value = error;
    }
  }

  /** Reads again what is in view. What is not in view is read again when it comes into view. */
  async refresh(): Promise<void> {
    const inView = this.#pages.filter((page) => page.items && page.used === this.#clock);
    for (const page of this.#pages) if (!inView.includes(page)) page.items = null;
    await Promise.all(inView.map((page) => this.#again(page)));
  }

  /**
   * The records from one to another, or to the one at a place, for a selection. Both stay where they are although rows
   * come and go. Of one that is gone, its time counts. Asks for the pages that are not here, and keeps none of them.
   */
  async range(from: FileRecord, to: FileRecord | number): Promise<FileRecord[]> {
    const time = (one: FileRecord) => timeOf(one, this.filter);
    const other = typeof to === 'number' ? await this.#reach(to) : to;
    const [newer, older] = time(from) < time(other) ? [time(other), time(from)] : [time(from), time(other)];
    const records: FileRecord[] = [];
    for (const page of this.#pages) {
      if (page.since === null || page.until === null || page.since < older || page.until.at > newer) continue;
      records.push(...(page.items ?? (await this.#fetch(page))));
    }
    // Within a millisecond the id decides, as in the order of the server.
    const place = (one: FileRecord) => `${time(one)} ${one.file_id}`;
    const [first, last] = [place(from), place(other)].sort();
    return records.filter((one) => place(one) >= first! && place(one) <= last!);
  }

  async #reach(index: number): Promise<FileRecord> {
    const number = this.#pageOf(index);
    const page = this.#pages[number]!;
    const items = page.items ?? (await this.#fetch(page));
    return items[Math.min(index - (this.#starts[number] ?? 0), items.length - 1)]!;
  }

  #ask(cursor: string | null, limit = PAGE, before?: string): Promise<{ items: FileRecord[]; next_cursor: string | null }> {
    const { organization, deleted, metadata, ...rest } = this.filter;
    const query: Record<string, string | number | undefined> = {
      organization_id: organization,
      ...rest,
      ...(deleted ? { purge_status: 'SYSTEM_PURGE', order: 'deleted' } : {}),
      ...Object.fromEntries(metadata.map(([key, value]) => [`metadata.${key}`, value])),
      limit,
      cursor: cursor ?? undefined,
    };
    const { created_before: own } = this.filter;
    if (before !== undefined && (own === undefined || Date.parse(before) < Date.parse(own))) query['created_before'] = before;
    return call('GET', '/files', { query: query as never, signal: this.#end.signal }).then(({ data }) => data);
  }

  /** Asks for a page again: from where it began to where it ended, whatever came above it meanwhile. */
  async #fetch(page: Page): Promise<FileRecord[]> {
    const { since, until } = page;
    const isTop = page.cursor === null && since !== null;
    // The first page has no cursor, so newer files would come with it. By creation, the server leaves them out.
    const before = isTop && !this.filter.deleted ? new Date(Date.parse(since) + 1).toISOString() : undefined;
    const time = (one: FileRecord) => timeOf(one, this.filter);
    let items: FileRecord[] = [];
    let cursor = page.cursor;
    for (let turn = 0; turn < PATIENCE; turn += 1) {
      const reply = await this.#ask(cursor, PAGE, before);
      items = items.concat(isTop ? reply.items.filter((one) => time(one) <= since) : reply.items);
      if (!until) return items;
      const border = items.findLastIndex((one) => until.ids.includes(one.file_id));
      if (border >= 0) return items.slice(0, border + 1);
      const last = items[items.length - 1];
      cursor = reply.next_cursor;
      if (cursor === null || (last !== undefined && time(last) < until.at)) break;
    }
    return items.filter((one) => time(one) > (until?.at ?? ''));
  }

  async #again(page: Page): Promise<void> {
    if (page.loading) return;
    page.loading = true;
    try {
      const items = await this.#fetch(page);
      page.items = items;
      page.count = items.length;
      page.runs = runsOf(items);
      this.#changed();
    } catch (error) {
      if (!isAbort(error)) this.error.value = error;
    } finally {
      page.loading = false;
    }
  }

  #forget(): void {
    const here = this.#pages.filter((page) => page.items);
    if (here.length <= KEPT) return;
    here.sort((a, b) => a.used - b.used);
    for (const page of here.slice(0, here.length - KEPT)) if (page.used !== this.#clock) page.items = null;
  }

  #pageOf(index: number): number {
    let low = 0;
    let high = this.#pages.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= index) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #changed(isTold = true): void {
    let sum = 0;
    this.#starts = this.#pages.map((page) => {
      const start = sum;
      sum += page.count;
      return start;
    });
    this.#total = sum;
    this.#merged = null;
    if (isTold) this.version.value += 1;
  }
}
