// Where rows are: groups of cells under headings, as many rows as a million files need. Pure arithmetic.
import type { Run } from './listing';

export interface Shape {
  columns: number;
  rowHeight: number;
  /** Height of a heading. 0: no headings, and all records are one group. */
  headHeight: number;
}

export type Line =
  | { kind: 'head'; y: number; height: number; day: string; row: number }
  | { kind: 'row'; y: number; height: number; first: number; count: number; row: number };

interface Group {
  day: string;
  /** Index of the first record. */
  first: number;
  count: number;
  rows: number;
  y: number;
  /** Number of lines before. */
  line: number;
}

export class Layout {
  readonly height: number;
  readonly lines: number;
  readonly shape: Shape;
  readonly #groups: Group[] = [];

  constructor(runs: readonly Run[], total: number, shape: Shape) {
    this.shape = shape;
    const parts = shape.headHeight > 0 ? runs : total > 0 ? [{ day: '', count: total }] : [];
    let first = 0;
    let y = 0;
    let line = 0;
    for (const { day, count } of parts) {
      if (count === 0) continue;
      const rows = Math.ceil(count / shape.columns);
      this.#groups.push({ day, first, count, rows, y, line });
      first += count;
      y += shape.headHeight + rows * shape.rowHeight;
      line += rows + (shape.headHeight > 0 ? 1 : 0);
    }
    this.height = y;
    this.lines = line;
  }

  /** The lines that touch a stretch. */
  between(top: number, bottom: number): Line[] {
    const { columns, rowHeight, headHeight } = this.shape;
    const lines: Line[] = [];
    for (let at = this.#groupAt((group) => group.y <= top); at < this.#groups.length; at += 1) {
      const group = this.#groups[at]!;
      if (group.y > bottom) break;
      const withHead = headHeight > 0 ? 1 : 0;
      if (withHead && group.y + headHeight >= top) {
        lines.push({ kind: 'head', y: group.y, height: headHeight, day: group.day, row: group.line });
      }
      const base = group.y + headHeight;
      const from = Math.max(0, Math.floor((top - base) / rowHeight));
      const to = Math.min(group.rows - 1, Math.floor((bottom - base) / rowHeight));
      for (let row = from; row <= to; row += 1) {
        const first = group.first + row * columns;
        const count = Math.min(columns, group.first + group.count - first);
        lines.push({ kind: 'row', y: base + row * rowHeight, height: rowHeight, first, count, row: group.line + withHead + row });
      }
    }
    return lines;
  }

  /** Where a record is drawn. */
  place(index: number): { y: number; column: number; line: number } {
    const group = this.#groups[this.#groupAt((one) => one.first <= index)];
    if (!group) return { y: 0, column: 0, line: 0 };
    const { columns, rowHeight, headHeight } = this.shape;
    const row = Math.floor((index - group.first) / columns);
    return {
      y: group.y + headHeight + row * rowHeight,
      column: (index - group.first) % columns,
      line: group.line + (headHeight > 0 ? 1 : 0) + row,
    };
  }

  /** The record `rows` rows above or below, in the same column where that exists. */
  step(index: number, rows: number): number {
    const { columns } = this.shape;
    let at = this.#groupAt((one) => one.first <= index);
    let group = this.#groups[at];
    if (!group) return index;
    const column = (index - group.first) % columns;
    let row = Math.floor((index - group.first) / columns) + rows;
    while (row < 0) {
      if (at === 0) return Math.min(group.first + column, group.first + group.count - 1);
      group = this.#groups[(at -= 1)]!;
      row += group.rows;
    }
    while (row >= group.rows) {
      if (at === this.#groups.length - 1) return group.first + group.count - 1;
      row -= group.rows;
      group = this.#groups[(at += 1)]!;
    }
    return Math.min(group.first + row * columns + column, group.first + group.count - 1);
  }

  /** First and last record of the row of a record. */
  row(index: number): [first: number, last: number] {
    const group = this.#groups[this.#groupAt((one) => one.first <= index)];
    if (!group) return [index, index];
    const { columns } = this.shape;
    const first = group.first + Math.floor((index - group.first) / columns) * columns;
    return [first, Math.min(first + columns, group.first + group.count) - 1];
  }

  /** The last group that fulfils a condition which holds up to some group. */
  #groupAt(holds: (group: Group) => boolean): number {
    let low = 0;
    let high = this.#groups.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (holds(this.#groups[middle]!)) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }
}
