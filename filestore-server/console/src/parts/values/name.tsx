import { classes } from '../controls/button';
import { hasHidden, pieces, splitForMiddle, spoken } from '../../text/names';

/**
 * The name of a file. Hidden characters become pills, direction stays inside, and a long name is shortened in the
 * middle, so that the extension is visible. Copying gives the original, because each pill contains its character.
 */
export function Name({ name, whole, class: extra }: { name: string; whole?: boolean; class?: string }) {
  const hidden = hasHidden(name);
  const label = hidden ? spoken(name) : undefined;
  if (whole || hidden) {
    return (
      <bdi class={classes('name', whole && 'whole', extra)} title={label}>
        <Pieces text={name} />
      </bdi>
    );
  }
  const [head, tail] = splitForMiddle(name);
  return (
    <bdi class={classes('name', extra)} title={name}>
      {tail ? (
        <>
          <span class="name-head" aria-hidden="true">{head}</span>
          <span class="name-tail" aria-hidden="true">{tail}</span>
          <span class="name-spoken">{name}</span>
        </>
      ) : (
        <span class="name-head">{head}</span>
      )}
    </bdi>
  );
}

function Pieces({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((piece, index) =>
        'text' in piece ? (
          <span key={index}>{piece.text}</span>
        ) : (
          <bdi key={index} class="pill" role="img" aria-label={piece.hidden.words} data-label={piece.hidden.label}>
            <span class="pill-original">{piece.hidden.character}</span>
          </bdi>
        ),
      )}
    </>
  );
}
