/** A line at the bottom that says what the server has done, and can take it back. */

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Button, classes, IconButton } from '../controls/button';
import { announce } from '../../shell/live';
import { detailOf, titleOf } from '../../text/words';

interface Line {
  id: number;
  text: string;
  kind: 'said' | 'failed';
  undo?: () => Promise<unknown>;
}

const line = signal<Line | null>(null);
let next = 0;

const STAYS_MS = 8000;

/** Says what happened, after a 2xx. `undo` adds a button, and the key `z` while the line stands. */
export function say(text: string, undo?: () => Promise<unknown>): void {
  line.value = { id: (next += 1), text, kind: 'said', ...(undo && { undo }) };
  announce(undo ? `${text}. Undo with z.` : text);
}

/** Says what failed. Only for what has no better place on the page. */
export function sayError(what: string, error: unknown): void {
  const text = `${what}: ${detailOf(error) || titleOf(error)}`;
  line.value = { id: (next += 1), text, kind: 'failed' };
  announce(text);
}

/** Takes back what the line says, if it can be taken back. Returns whether it could. */
export function undoLast(): boolean {
  const current = line.peek();
  if (!current?.undo) return false;
  void runUndo(current);
  return true;
}

async function runUndo(current: Line): Promise<void> {
  try {
    await current.undo?.();
    if (line.peek()?.id === current.id) line.value = null;
  } catch (reason) {
    sayError('Undo failed', reason);
  }
}

/** Stands once in the page. The line stays for 8 s, and longer while hovered or focused. */
export function ToastHost() {
  const current = line.value;
  return current ? <Toast key={current.id} current={current} /> : null;
}

function Toast({ current }: { current: Line }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let left = STAYS_MS;
    const timer = setInterval(() => {
      const held = box.current?.matches(':hover, :focus-within') ?? false;
      if (!held) left -= 250;
      if (left <= 0 && line.peek()?.id === current.id) line.value = null;
    }, 250);
    return () => clearInterval(timer);
  }, [current.id]);

  return (
    <div ref={box} class={classes('toast', current.kind)}>
      <span class="toast-text">{current.text}</span>
      {current.undo && (
        <Button kind="quiet" size="small" icon="undo-2" onClick={() => runUndo(current)}>
          Undo
        </Button>
      )}
      <IconButton name="Dismiss" icon="x" onClick={() => (line.value = null)} />
    </div>
  );
}
