import type { ComponentChildren } from 'preact';
import { classes } from './button';

export interface Column<R> {
  key: string;
  title: ComponentChildren;
  cell: (row: R) => ComponentChildren;
  align?: 'end';
  /** On a phone the row is a card: `title` is its first line, `shown` stands below, `hidden` is left out. */
  phone?: 'title' | 'shown' | 'hidden' | 'action';
  width?: 'narrow' | 'wide';
  /** The heading is only for the ear, for example of a column with buttons. */
  quiet?: boolean;
}

/** A table. On phones each row becomes a card with the columns that matter. For thousands of rows use the virtual list. */
export function Table<R>({
  label,
  columns,
  rows,
  rowKey,
  rowClass,
  busy,
  onRow,
}: {
  label: string;
  columns: readonly Column<R>[];
  rows: readonly R[];
  rowKey: (row: R) => string;
  rowClass?: (row: R) => string | false | undefined;
  /** Rows that are asked again stay, dimmed. */
  busy?: boolean;
  /** Where the whole row leads. The first cell must have the link for the keyboard. */
  onRow?: (row: R) => void;
}) {
  return (
    <div class={classes('table-box', busy && 'dim')}>
      <table class="table" role="table" aria-label={label} aria-busy={busy || undefined}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.key} role="columnheader" scope="col" class={classes(column.align, column.width, column.phone)}>
                {column.quiet ? <span class="unseen">{column.title}</span> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr
              key={rowKey(row)}
              role="row"
              class={classes(onRow && 'leads', rowClass?.(row))}
              onClick={onRow && ((event) => !isControl(event.target) && onRow(row))}
            >
              {columns.map((column) => (
                <td key={column.key} role="cell" class={classes(column.align, column.phone ?? 'shown')}>
                  {column.phone !== 'title' && column.phone !== 'action' && !column.quiet && (
                    <span class="cell-label" aria-hidden="true">
                      {column.title}
                    </span>
                  )}
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('a, button, input, label, select') !== null;
}
