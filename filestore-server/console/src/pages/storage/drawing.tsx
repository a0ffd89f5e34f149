/** Where the bytes of a new file go, and when the reply comes, as a drawing. */

import type { ComponentChildren } from 'preact';
import { classes } from '../../parts/controls/button';

export interface Way {
  /** Code of the provider, or `LOCAL`. */
  provider: string;
  name: string;
  sync: boolean;
}

export function Drawing({ way }: { way: Way }) {
  const isLocal = way.provider === 'LOCAL';
  const words = isLocal
    ? 'An upload arrives, is stored by the server itself, and gets the reply 201.'
    : way.sync
      ? `An upload arrives, is stored by the server itself, gets the reply 201, and is copied to ${way.provider} in the background.`
      : `An upload arrives, is stored at ${way.provider}, and then gets the reply 201.`;
  return (
    <div class="drawing" role="img" aria-label={words}>
      <Stop under="An upload">arrives</Stop>
      {isLocal ? (
        <>
          <Leg>then reply 201</Leg>
          <Stop under="LOCAL" goal>
            {way.name}
          </Stop>
        </>
      ) : way.sync ? (
        <>
          <Leg>reply 201</Leg>
          <Stop under="LOCAL">server's own storage</Stop>
          <Leg>in the background</Leg>
          <Stop under={way.provider} goal>
            {way.name}
          </Stop>
        </>
      ) : (
        <>
          <Leg>written through, then reply 201</Leg>
          <Stop under={way.provider} goal>
            {way.name}
          </Stop>
        </>
      )}
    </div>
  );
}

function Stop({ under, goal, children }: { under: string; goal?: boolean; children: ComponentChildren }) {
  return (
    <span class={classes('stop', goal && 'goal')}>
      <span class="stop-under">{under}</span>
      <span class="stop-name">
        <bdi>{children}</bdi>
      </span>
    </span>
  );
}

function Leg({ children }: { children: ComponentChildren }) {
  return <span class="leg">{children}</span>;
}
