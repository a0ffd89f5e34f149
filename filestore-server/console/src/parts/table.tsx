import type { ComponentChildren } from 'preact';
import { classes } from './controls/button';

export interface Column<R> {
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
  columns: given,
  buttons,
  rows,
  rowKey,
  rowClass,
  busy,
  onRow,
}: {
  label: string;
  columns: readonly Column<R>[];
  /** What can be done with a row, in a last column. Its heading is only for the ear, on a phone it is at the top right. */
  buttons?: (row: R) => ComponentChildren;
  rows: readonly R[];
  rowKey: (row: R) => string;
  rowClass?: (row: R) => string | false | undefined;
  /** Rows that are asked again stay, dimmed. */
  busy?: boolean;
  /** Where the whole row leads. The first cell must have the link for the keyboard. */
  onRow?: (row: R) => void;
}) {
  const columns: Column<R>[] = [...given];
  if (buttons) columns.push({ title: 'Actions', quiet: true, align: 'end', phone: 'action', cell: buttons });
  return (
    <div class={classes('table-box', busy && 'dim')}>
      <table class="table" role="table" aria-label={label} aria-busy={busy || undefined}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column, at) => (
              <th key={at} role="columnheader" scope="col" class={classes(column.align, column.width, column.phone)}>
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
              {columns.map((column, at) => (
                <td key={at} role="cell" class={classes(column.align, column.phone ?? 'shown')}>
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
