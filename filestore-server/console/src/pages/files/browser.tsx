// A grid or a list over any number of records: draws the rows in view, walks by keyboard, selects.
import { effect, signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { FileRecord } from '../../api/call';
import { Layout, type Line, type Shape } from '../../data/layout';
import type { Listing } from '../../data/listing';
import { add, anchor, clearSelection, selection, toggle } from '../../data/selection';
import { Button } from '../../parts/controls/button';
import { ErrorBox } from '../../parts/notes/error';
import { Icon } from '../../parts/icon';
import { count } from '../../text/sizes';

/** Browsers end at 17 to 33 million pixels. Beyond this height the origin moves. */
const TALLEST = 8_000_000;
const MARGIN = 1_500_000;

export interface BrowserProps {
  listing: Listing;
  shape: (width: number) => Shape;
  /** What the rows are, for a screen reader: `Files`. */
  label: string;
  kind: 'grid' | 'list';
  /** Names of the columns of a list, in a row above. */
  head?: ComponentChildren;
  columns: number;
  cell: (record: FileRecord, state: CellState) => ComponentChildren;
  /** What stands in a cell while its record is not here. */
  blank: ComponentChildren;
  heading?: (day: string) => ComponentChildren;
  onOpen: (record: FileRecord) => void;
  onMenu: (record: FileRecord, at: MouseEvent | HTMLElement) => void;
  onTrash?: () => void;
  /** Space at the end that the selection bar covers. */
  padEnd: number;
}

export interface CellState {
  selected: boolean;
  selecting: boolean;
  toggle: (event: MouseEvent | KeyboardEvent) => void;
}

/** Where each listing was scrolled to and which record had the focus, to come back to it. */
const memory = new Map<string, { top: number; active: string | null }>();
/** Tells the view to go up, for example from the pill of new files. */
export const goUp = signal(0);
/** Whether the view is at its top, so that new files may slip in. */
export const atTop = signal(true);

export function forgetPlaces(): void {
  memory.clear();
}

export function Browser(props: BrowserProps) {
  const { listing, kind } = props;
  const box = useRef<HTMLDivElement>(null);
  const size = useSignal({ width: 0, height: 0, bar: 0 });
  const top = useSignal(0);
  const origin = useRef(0);
  const key = `${kind} ${JSON.stringify(listing.filter)}`;
  const active = useSignal<string | null>(memory.get(key)?.active ?? null);
  const wantsFocus = useRef(false);
  const awaited = useRef(-1);
  // While the view flies over many screens, only quiet blocks are drawn.
  const flying = useSignal(false);
  const landing = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const isFlying = flying.value;
  const press = useRef<{ timer: ReturnType<typeof setTimeout>; fired: boolean } | null>(null);

  const version = listing.version.value;
  const complete = listing.complete.value;
  const shape = useMemo(() => props.shape(size.value.width), [props.shape, size.value.width]);
  const layout = useMemo(
    () => new Layout(listing.runs(), listing.count, shape),
    [version, shape.columns, shape.rowHeight, shape.headHeight, listing],
  );
  const looked = listing.lookedAt.value;
  const tail = complete || looked !== null ? 0 : shape.rowHeight * 2;
  const height = layout.height + tail + props.padEnd;
  const shownHeight = Math.min(height - origin.current, TALLEST);

  // The stretch in view, in steps of half a row so that most scrolling draws nothing anew.
  const virtualTop = top.value;
  const over = Math.max(shape.rowHeight * (kind === 'grid' ? 1 : 6), 200);
  const lines = size.value.width === 0 ? [] : layout.between(virtualTop - over, virtualTop + size.value.height + over);
  const activeIndex = active.value === null ? -1 : listing.indexOf(active.value);
  const shown = withActive(lines, layout, activeIndex, shape);
  const firstIndex = indexAt(lines, 'first');
  const lastIndex = indexAt(lines, 'last');

  useLayoutEffect(() => {
    if (size.value.width > 0) listing.need(firstIndex, lastIndex, isFlying);
  }, [listing, firstIndex, lastIndex, version, isFlying, size.value.width]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      size.value = { width: element.clientWidth, height: element.clientHeight, bar: element.offsetWidth - element.clientWidth };
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  // Back at the place where the visitor was.
  useLayoutEffect(() => {
    const element = box.current;
    const place = memory.get(key);
    origin.current = 0;
    if (!element) return;
    if (place && place.top < layout.height) {
      origin.current = Math.max(0, Math.floor((place.top - TALLEST / 2) / shape.rowHeight) * shape.rowHeight);
      element.scrollTop = place.top - origin.current;
    } else {
      element.scrollTop = 0;
    }
    top.value = element.scrollTop + origin.current;
    atTop.value = top.peek() < 40;
  }, [key]);

  useEffect(() => () => {
    clearTimeout(landing.current);
    atTop.value = true;
  }, []);
  useEffect(() => effect(() => {
    if (goUp.value === 0) return;
    origin.current = 0;
    box.current?.scrollTo({ top: 0 });
    top.value = 0;
  }), []);

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    let at = element.scrollTop;
    const hidden = height - origin.current - TALLEST;
    const step = Math.floor(TALLEST / 2 / shape.rowHeight) * shape.rowHeight;
    if (at > TALLEST - MARGIN && hidden > 0) {
      origin.current += step;
      at -= step;
      element.scrollTop = at;
    } else if (at < MARGIN && origin.current > 0) {
      const back = Math.min(step, origin.current);
      origin.current -= back;
      at += back;
      element.scrollTop = at;
    }
    const virtual = at + origin.current;
    if (Math.abs(virtual - top.peek()) > element.clientHeight * 1.5) {
      flying.value = true;
      clearTimeout(landing.current);
      landing.current = setTimeout(() => (flying.value = false), 120);
    }
    memory.set(key, { top: virtual, active: active.peek() });
    atTop.value = virtual < 40;
    const half = shape.rowHeight / 2;
    if (Math.floor(virtual / half) !== Math.floor(top.peek() / half)) top.value = virtual;
  };

  useLayoutEffect(() => {
    if (awaited.current >= 0 && listing.at(awaited.current)) activate(awaited.current);
  }, [version]);

  // The focus follows the active record.
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    const element = box.current?.querySelector<HTMLElement>('[data-active]');
    if (!element) return;
    wantsFocus.current = false;
    element.focus({ preventScroll: true });
  });

  function activate(index: number): void {
    const record = listing.at(index);
    const element = box.current;
    if (!element) return;
    // Its page may have to be asked for again: then it becomes active when it is here.
    awaited.current = record ? -1 : index;
    if (record) {
      active.value = record.file_id;
      wantsFocus.current = true;
      memory.set(key, { top: top.peek(), active: record.file_id });
    }
    const { y } = layout.place(index);
    const at = element.scrollTop + origin.current;
    const clear = props.padEnd + 8;
    if (y < at + 4) scrollTo(Math.max(0, y - shape.headHeight - 8));
    else if (y + shape.rowHeight > at + element.clientHeight - clear) scrollTo(y + shape.rowHeight - element.clientHeight + clear);
  }

  function scrollTo(virtual: number): void {
    const element = box.current;
    if (!element) return;
    if (virtual < origin.current || virtual > origin.current + TALLEST - element.clientHeight) {
      origin.current = Math.max(0, Math.floor((virtual - TALLEST / 2) / shape.rowHeight) * shape.rowHeight);
    }
    top.value = virtual;
    element.scrollTop = virtual - origin.current;
  }

  async function range(to: FileRecord | number): Promise<void> {
    const from = (anchor.value ??= typeof to === 'number' ? listing.at(to) : to);
    if (from) add(await listing.range(from, to));
  }

  function pick(record: FileRecord, event: MouseEvent | KeyboardEvent): void {
    active.value = record.file_id;
    if (event.shiftKey) void range(record);
    else toggle(record);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.target instanceof HTMLInputElement || event.altKey) return;
    const total = listing.count;
    if (total === 0) return;
    const now = activeIndex < 0 ? Math.max(0, firstIndex) : activeIndex;
    const control = event.ctrlKey || event.metaKey;
    const page = Math.max(1, Math.floor(size.value.height / shape.rowHeight) - 1);
    let next: number | null = null;
    switch (event.key) {
      case 'ArrowRight': next = kind === 'grid' ? Math.min(total - 1, now + 1) : null; break;
      case 'ArrowLeft': next = kind === 'grid' ? Math.max(0, now - 1) : null; break;
      case 'ArrowDown': next = layout.step(now, 1); break;
      case 'ArrowUp': next = layout.step(now, -1); break;
      case 'PageDown': next = layout.step(now, page); break;
      case 'PageUp': next = layout.step(now, -page); break;
      case 'Home': next = control || kind === 'list' ? 0 : layout.row(now)[0]; break;
      case 'End': next = control || kind === 'list' ? total - 1 : layout.row(now)[1]; break;
      case ' ': {
        const record = listing.at(now);
        if (record) pick(record, event);
        event.preventDefault();
        return;
      }
      case 'Enter': {
        const record = listing.at(now);
        if (record && !(event.target instanceof HTMLButtonElement)) {
          event.preventDefault();
          props.onOpen(record);
        }
        return;
      }
      case 'a':
        if (!control) return;
        event.preventDefault();
        add(listing.loaded());
        return;
      case 'Escape':
        if (selection.peek().size > 0) clearSelection();
        return;
      case 'Delete':
      case 'Backspace':
        if (event.key === 'Backspace' && !event.metaKey) return;
        event.preventDefault();
        if (selection.peek().size === 0) {
          const record = listing.at(now);
          if (record) toggle(record);
        }
        props.onTrash?.();
        return;
      case 'F10':
      case 'ContextMenu': {
        if (event.key === 'F10' && !event.shiftKey) return;
        const record = listing.at(now);
        const element = box.current?.querySelector<HTMLElement>('[data-active]');
        event.preventDefault();
        if (record && element) props.onMenu(record, element);
        return;
      }
      default:
        return;
    }
    if (next === null) return;
    event.preventDefault();
    if (event.shiftKey && (event.key.startsWith('Arrow') || event.key.startsWith('Page') || event.key === 'Home' || event.key === 'End')) {
      anchor.value ??= listing.at(now);
      void range(listing.at(next) ?? next);
    }
    activate(next);
  }

  const selecting = selection.value.size > 0;
  // The tab stop, before any record was active: the first in view.
  const stop = activeIndex >= 0 ? active.value : (listing.at(Math.max(0, firstIndex))?.file_id ?? null);

  const handlers = (record: FileRecord) => ({
    onClick: (event: MouseEvent) => {
      if (press.current?.fired) return;
      if (event.target instanceof Element && event.target.closest('button, input')) return;
      const touch = 'pointerType' in event && event.pointerType === 'touch';
      if (event.shiftKey || event.ctrlKey || event.metaKey || (selecting && touch)) {
        event.preventDefault();
        pick(record, event);
        return;
      }
      active.value = record.file_id;
      event.preventDefault();
      props.onOpen(record);
    },
    onContextMenu: (event: MouseEvent) => {
      if (press.current?.fired) return event.preventDefault();
      active.value = record.file_id;
      props.onMenu(record, event);
    },
    onPointerDown: (event: PointerEvent) => {
      if (event.pointerType !== 'touch') return;
      const state = { fired: false, timer: setTimeout(() => {
        state.fired = true;
        toggle(record);
      }, 450) };
      press.current = state;
    },
    onPointerUp: () => {
      clearTimeout(press.current?.timer);
      setTimeout(() => (press.current = null), 0);
    },
    onPointerCancel: () => {
      clearTimeout(press.current?.timer);
      press.current = null;
    },
    onFocus: () => {
      active.value = record.file_id;
    },
  });

  const cellState = (record: FileRecord): CellState => ({
    selected: selection.value.has(record.file_id),
    selecting,
    toggle: (event) => pick(record, event),
  });

  return (
    <div class="browser-frame">
    <div class={`browser ${kind} ${selecting ? 'selecting' : ''}`} role="grid" aria-label={props.label} aria-multiselectable="true"
      aria-rowcount={complete ? layout.lines + (props.head ? 1 : 0) : -1} aria-colcount={props.columns} onKeyDown={onKeyDown}
      aria-busy={listing.loading.value || undefined} style={{ '--bar': `${size.value.bar}px` }}>
      {props.head}
      <div class="scroller" ref={box} onScroll={onScroll} role="rowgroup">
        <div class="canvas" role="presentation" style={{ height: `${shownHeight}px` }}>
          {shown.map((line) => {
            const style = { transform: `translateY(${line.y - origin.current}px)`, height: `${line.height}px` };
            if (line.kind === 'head') {
              return (
                <div key={`h${line.day}`} class="line day-line" role="row" aria-rowindex={line.row + 1} style={style}>
                  <div role="gridcell" aria-colspan={props.columns} class="files-day">{props.heading?.(line.day)}</div>
                </div>
              );
            }
            const rowIndex = line.row + 1 + (props.head ? 1 : 0);
            if (kind === 'list') {
              const record = listing.at(line.first);
              if (!record || (isFlying && record.file_id !== active.value)) return <div key={`b${line.first}`} class="line row blank" role="row" aria-rowindex={rowIndex} style={style}><div role="gridcell">{props.blank}</div></div>;
              const isStop = record.file_id === stop;
              return (
                <div key={record.file_id} class={`line row ${selection.value.has(record.file_id) ? 'selected' : ''}`} role="row" aria-rowindex={rowIndex}
                  aria-selected={selection.value.has(record.file_id)} tabIndex={isStop ? 0 : -1} data-active={record.file_id === active.value || undefined}
                  data-id={record.file_id} style={style} {...handlers(record)}>
                  {props.cell(record, cellState(record))}
                </div>
              );
            }
            return (
              <div key={`r${line.first}`} class="line row" role="row" aria-rowindex={rowIndex} style={{ ...style, gridTemplateColumns: `repeat(${shape.columns}, minmax(0, 1fr))` }}>
                {Array.from({ length: line.count }, (_, column) => {
                  const record = listing.at(line.first + column);
                  if (!record || (isFlying && record.file_id !== active.value)) return <div key={column} role="gridcell" class="cell blank" aria-colindex={column + 1}>{props.blank}</div>;
                  const isStop = record.file_id === stop;
                  const selected = selection.value.has(record.file_id);
                  return (
                    <div key={record.file_id} role="gridcell" class={`cell ${selected ? 'selected' : ''}`} aria-colindex={column + 1} aria-selected={selected}
                      tabIndex={isStop ? 0 : -1} data-active={record.file_id === active.value || undefined} data-id={record.file_id} {...handlers(record)}>
                      {props.cell(record, cellState(record))}
                    </div>
                  );
                })}
              </div>
            );
          })}
          {tail > 0 && (
            <div class={`line tail ${kind}`} role="presentation" style={{ transform: `translateY(${layout.height - origin.current}px)`, height: `${tail}px`, gridTemplateColumns: `repeat(${shape.columns}, minmax(0, 1fr))` }}>
              {Array.from({ length: kind === 'grid' ? shape.columns : 2 }, (_, at) => <div key={at} class="cell blank">{props.blank}</div>)}
            </div>
          )}
        </div>
      </div>
    </div>
    {listing.count > 0 && listing.error.value !== null && <div class="browser-note"><ErrorBox error={listing.error.value} onRetry={() => listing.retry()} what="The next files" /></div>}
    {looked !== null && (
      <div class="browser-note" role="status">
        <p>Looked at {count(looked)} files without finding more.</p>
        <Button size="small" onClick={() => listing.retry()}>Go on</Button>
      </div>
    )}
    <div class="unseen" role="status">{complete && listing.isExact ? `${count(listing.count)} in all` : ''}</div>
    </div>
  );
}

/** The names of the columns of a list, and a box for all rows that are here. */
export function ListHead({ listing, words, classes }: { listing: Listing; words: readonly string[]; classes: readonly string[] }) {
  const all = listing.loadedCount > 0 && selection.value.size >= listing.loadedCount;
  return (
    <div class="list-head" role="row" aria-rowindex={1}>
      {words.map((word, at) => (
        <span key={at} role="columnheader" class={classes[at]}>
          {at === 0 && (
            <button type="button" class={`tick ${all ? 'on' : ''}`} aria-label="Select all loaded files" aria-pressed={all}
              onClick={() => (all ? clearSelection() : add(listing.loaded()))}>{all && <Icon name="check" size={14} />}</button>
          )}
          {word || <span class="unseen">Restore</span>}
        </span>
      ))}
    </div>
  );
}

/** Leads up to the new records that wait above. */
export function NewPill({ listing }: { listing: Listing }) {
  const above = listing.above.value.size;
  if (above === 0 || atTop.value) return null;
  const up = () => {
    void listing.head();
    goUp.value += 1;
  };
  return <button type="button" class="new-pill" onClick={up}><Icon name="arrow-up" size={14} />{count(above)} new</button>;
}

function indexAt(lines: Line[], end: 'first' | 'last'): number {
  const rows = lines.filter((line) => line.kind === 'row');
  const line = end === 'first' ? rows[0] : rows[rows.length - 1];
  if (!line || line.kind !== 'row') return 0;
  return end === 'first' ? line.first : line.first + line.count - 1;
}

/** The row with the focus stays in the document when it scrolls away. */
function withActive(lines: Line[], layout: Layout, index: number, shape: Shape): Line[] {
  if (index < 0) return lines;
  const { line, y } = layout.place(index);
  if (lines.some((one) => one.row === line)) return lines;
  const [first, last] = layout.row(index);
  const row: Line = { kind: 'row', y, height: shape.rowHeight, first, count: last - first + 1, row: line };
  return y < (lines[0]?.y ?? 0) ? [row, ...lines] : [...lines, row];
}
