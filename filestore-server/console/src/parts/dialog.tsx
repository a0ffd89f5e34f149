/** Dialogs: `<dialog>` with `showModal()`. Escape closes, and the focus returns to where it was. */

import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button, classes, IconButton } from './controls/button';
import { ErrorLine } from './notes/error';
import { TextField } from './controls/field';
import { polite } from '../shell/live';

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

  // Before the paint, so that the focus never waits for it.
  useLayoutEffect(() => {
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
      onClose={() => {
        // Browsers close at the second Escape without asking. A busy dialog stays, so it opens again.
        if (!box.current?.isConnected) return;
        onClose();
        setTimeout(() => box.current?.isConnected && !box.current.open && box.current.showModal());
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      {/* What is outside of a dialog is not spoken. */}
      <div class="unseen" role="status">{polite}</div>
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
  const end = (done: boolean) => {
    asked.value = null;
    question.settle(done);
  };
  return (
    <FormDialog
      title={question.title}
      verb={question.verb}
      danger={question.danger ?? false}
      disabled={question.typed !== undefined && word.trim() !== question.typed}
      cautious
      onClose={() => end(false)}
      act={async () => {
        await question.act();
        end(true);
      }}
    >
      <div class="dialog-text">{question.text}</div>
      {question.typed !== undefined && (
        <TextField label={`Type ${question.typed} to confirm`} value={word} onInput={setWord} autoComplete="off" mono />
      )}
    </FormDialog>
  );
}

/**
 * A dialog that does one thing. It is busy until `act` settles, and shows a refusal below its fields. `act` closes the
 * dialog itself, or returns without doing so if a field is wrong.
 */
export function FormDialog({
  title,
  verb,
  danger,
  disabled,
  cautious,
  wide,
  onClose,
  act,
  children,
}: {
  title: ComponentChildren;
  verb: string;
  danger?: boolean;
  disabled?: boolean;
  /** The focus starts on *Cancel*. */
  cautious?: boolean;
  wide?: boolean;
  onClose: () => void;
  act: () => unknown;
  /** With a function, the fields can show what the server says about them. */
  children: ComponentChildren | ((error: unknown) => ComponentChildren);
}) {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    if (disabled || busy) return;
    setBusy(true);
    setError(null);
    try {
      await act();
    } catch (reason) {
      setError(reason);
    }
    setBusy(false);
    // Still open: a field is wrong, and the next key should reach it.
    requestAnimationFrame(() => document.querySelector<HTMLElement>('dialog[open] [aria-invalid="true"]')?.focus());
  };
  return (
    <Dialog
      title={title}
      wide={wide ?? false}
      onClose={() => !busy && onClose()}
      onSubmit={submit}
      actions={
        <>
          <CancelButton onClick={() => !busy && onClose()} plain={!cautious} />
          <Button type="submit" kind={danger ? 'danger' : 'primary'} disabled={disabled ?? false} busy={busy}>
            {verb}
          </Button>
        </>
      }
    >
      {typeof children === 'function' ? children(error) : children}
      {error !== null && <ErrorLine error={error} />}
    </Dialog>
  );
}

/** The button that leaves. In a question it has the focus first, elsewhere it is `plain`. */
export function CancelButton({ onClick, plain, children = 'Cancel' }: { onClick: () => void; plain?: boolean; children?: string }) {
  return (
    <button type="button" class="button plain" data-autofocus={!plain || undefined} onClick={onClick}>
      <span class="button-word">{children}</span>
    </button>
  );
}
