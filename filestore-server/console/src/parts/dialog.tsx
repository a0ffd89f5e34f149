/** Dialogs: `<dialog>` with `showModal()`. Escape closes, and the focus returns to where it was. */

import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Button, classes, IconButton } from './button';
import { ErrorLine } from './error';
import { TextField } from './field';

/**
 * A modal dialog. The focus starts on the element with `data-autofocus`, else on the first control.
 * `locked` refuses Escape and the cross, for example while a secret was not copied: `onClose` is asked anyway.
 */
export function Dialog({
  title,
  children,
  actions,
  onClose,
  onSubmit,
  wide,
}: {
  title: ComponentChildren;
  children: ComponentChildren;
  actions?: ComponentChildren;
  /** Called for Escape, the cross and a click outside. The caller then stops to render the dialog. */
  onClose: () => void;
  /** Makes the dialog a form, so that Enter acts. */
  onSubmit?: () => unknown;
  wide?: boolean;
}) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();

  useEffect(() => {
    const dialog = box.current;
    if (!dialog) return;
    const before = document.activeElement;
    if (!dialog.open) dialog.showModal();
    dialog.querySelector<HTMLElement>('[data-autofocus]')?.focus();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);

  const body = (
    <>
      <div class="dialog-body">{children}</div>
      {actions && <footer class="dialog-foot">{actions}</footer>}
    </>
  );
  return (
    <dialog
      ref={box}
      class={classes('dialog', wide && 'wide')}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <IconButton name="Close" icon="x" onClick={onClose} />
      </header>
      {onSubmit ? (
        <form
          class="dialog-form"
          onSubmit={(event) => {
            event.preventDefault();
            void onSubmit();
          }}
          noValidate
        >
          {body}
        </form>
      ) : (
        body
      )}
    </dialog>
  );
}

export interface Question {
  title: string;
  /** What happens, in one sentence. */
  text: ComponentChildren;
  /** The verb on the button, for example `Revoke`. */
  verb: string;
  danger?: boolean;
  /** The number or name that must be typed, for what cannot be taken back and concerns many. */
  typed?: string;
  /** Does it. The dialog stays, busy, until the server has answered, and shows a refusal. */
  act: () => Promise<unknown>;
}

interface Asked extends Question {
  settle: (done: boolean) => void;
}

const asked = signal<Asked | null>(null);

/** Asks before what cannot be taken back. Resolves to true after `act` succeeded, to false if the reader left. */
export function ask(question: Question): Promise<boolean> {
  return new Promise((resolve) => {
    asked.peek()?.settle(false);
    asked.value = { ...question, settle: resolve };
  });
}

/** Stands once in the page and shows the question of `ask`. */
export function QuestionHost() {
  const question = asked.value;
  return question ? <QuestionDialog key={question.title} question={question} /> : null;
}

function QuestionDialog({ question }: { question: Asked }) {
  const [word, setWord] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const ready = question.typed === undefined || word.trim() === question.typed;

  const end = (done: boolean) => {
    asked.value = null;
    question.settle(done);
  };
  const act = async () => {
    if (!ready || busy) return;
    setBusy(true);
    setError(null);
    try {
      await question.act();
      end(true);
    } catch (reason) {
      setError(reason);
      setBusy(false);
    }
  };

  return (
    <Dialog
      title={question.title}
      onClose={() => !busy && end(false)}
      onSubmit={act}
      actions={
        <>
          <CancelButton onClick={() => end(false)} />
          <Button type="submit" kind={question.danger ? 'danger' : 'primary'} disabled={!ready} busy={busy}>
            {question.verb}
          </Button>
        </>
      }
    >
      <div class="dialog-text">{question.text}</div>
      {question.typed !== undefined && (
        <TextField label={`Type ${question.typed} to confirm`} value={word} onInput={setWord} autoComplete="off" mono />
      )}
      {error !== null && <ErrorLine error={error} />}
    </Dialog>
  );
}

/** The button that leaves. In a question it has the focus first. */
export function CancelButton({ onClick, children = 'Cancel' }: { onClick: () => void; children?: string }) {
  return (
    <button type="button" class="button plain" data-autofocus onClick={onClick}>
      <span class="button-word">{children}</span>
    </button>
  );
}
