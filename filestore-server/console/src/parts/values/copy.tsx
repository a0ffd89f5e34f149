import { useEffect, useState } from 'preact/hooks';
import { shortId } from '../../text/names';
import { Button, IconButton } from '../controls/button';
import { announce } from '../../shell/live';

/** Copies a text. Without a clipboard (plain HTTP on another host) it uses a selection, as browsers did before. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  const host = document.querySelector('dialog[open]') ?? document.body;
  const before = document.activeElement;
  area.value = text;
  area.className = 'unseen';
  area.setAttribute('aria-hidden', 'true');
  host.append(area);
  area.select();
  let copied = false;
  try {
    copied = document.execCommand('copy');
  } catch {
    copied = false;
  }
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}

function useCopied(text: string | (() => string), onCopied?: () => void): ['no' | 'yes' | 'failed', () => Promise<void>] {
  const [state, setState] = useState<'no' | 'yes' | 'failed'>('no');
  useEffect(() => {
    if (state === 'no') return;
    const timer = setTimeout(() => setState('no'), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  return [
    state,
    async () => {
      const copied = await copyText(typeof text === 'string' ? text : text());
      setState(copied ? 'yes' : 'failed');
      announce(copied ? 'Copied' : 'The browser did not allow to copy');
      if (copied) onCopied?.();
    },
  ];
}

/** Copies with a small icon. `what` completes the name, for example `id`. */
export function CopyIcon({ text, what }: { text: string; what: string }) {
  const [state, copy] = useCopied(text);
  const name = state === 'yes' ? 'Copied' : `Copy ${what}`;
  return <IconButton name={name} icon={state === 'yes' ? 'check' : 'copy'} size="small" class="copy-icon" onClick={copy} />;
}

/** Copies with a button. */
export function CopyButton({
  text,
  children = 'Copy',
  kind = 'plain',
  size,
  icon = 'copy',
  onCopied,
}: {
  text: string | (() => string);
  children?: string;
  kind?: 'plain' | 'primary' | 'quiet';
  size?: 'small';
  icon?: 'copy' | 'braces' | 'link';
  onCopied?: () => void;
}) {
  const [state, copy] = useCopied(text, onCopied);
  return (
    <Button kind={kind} {...(size && { size })} icon={state === 'yes' ? 'check' : icon} onClick={copy}>
      {state === 'yes' ? 'Copied' : state === 'failed' ? 'Not allowed' : children}
    </Button>
  );
}

/** An id or digest in mono, shortened in the middle, with copy. */
export function Id({ value, what = 'id', full }: { value: string; what?: string; full?: boolean }) {
  return (
    <span class="id">
      <code title={value}>{full ? value : shortId(value)}</code>
      <CopyIcon text={value} what={what} />
    </span>
  );
}
