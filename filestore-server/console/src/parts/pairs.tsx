import { Fragment, type ComponentChildren } from 'preact';

/** A list of labels with their values. Rows without a value are left out. */
export function Pairs({ rows }: { rows: readonly (readonly [label: ComponentChildren, value: ComponentChildren] | null | false)[] }) {
  return (
    <dl class="pairs">
      {rows.map((row, index) =>
        row && row[1] !== null && row[1] !== undefined ? (
          <Fragment key={index}>
            <dt>{row[0]}</dt>
            <dd>{row[1]}</dd>
          </Fragment>
        ) : null,
      )}
    </dl>
  );
}
