import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../controls/button';
import { CopyButton } from './copy';
import { ask } from '../dialog';
import { Notice } from '../notes/notice';

/**
 * A secret that the server shows once. It is drawn, but a screen reader gets it only after *Show*, and it is masked when
 * the focus leaves. *Show* itself is seen once it is masked, or has the focus. Closing asks, unless it was copied.
 */
export function SecretNotice({
  secret,
  what,
  title,
  children,
  onClose,
}: {
  secret: string;
  /** What it is, for example `key of web-frontend`. */
  what: string;
  title: ComponentChildren;
  children?: ComponentChildren;
  onClose: () => void;
}) {
  const [shown, setShown] = useState<'drawn' | 'masked' | 'revealed'>('drawn');
  const [copied, setCopied] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.querySelector<HTMLElement>('.button.primary')?.focus(), []);

  const close = async () => {
    if (copied) return onClose();
    const left = await ask({
      title: `Close without a copy?`,
      text: `The server cannot show the ${what} again. If you lose it, rotate to get a new one.`,
      verb: 'Close',
      danger: true,
      act: () => Promise.resolve(),
    });
    if (left) onClose();
  };

  return (
    <Notice kind="accent" icon="key-round" title={title} onClose={close}>
      {children}
      <div
        ref={box}
        class={`secret ${shown}`}
        onFocusOut={(event) => {
          const to = event.relatedTarget;
          if (!(to instanceof Node) || !event.currentTarget.contains(to)) setShown('masked');
        }}
      >
        <code class="secret-text" aria-hidden={shown !== 'revealed'} data-secret>
          {shown === 'masked' ? '•'.repeat(24) : secret}
        </code>
        <Button
          kind="quiet"
          size="small"
          icon={shown === 'revealed' ? 'eye-off' : 'eye'}
          label={`${shown === 'revealed' ? 'Hide' : 'Show'} the ${what}`}
          onClick={() => setShown(shown === 'revealed' ? 'masked' : 'revealed')}
        >
          {shown === 'revealed' ? 'Hide' : 'Show'}
        </Button>
        <CopyButton kind="primary" size="small" text={secret} onCopied={() => setCopied(true)} />
      </div>
    </Notice>
  );
}
