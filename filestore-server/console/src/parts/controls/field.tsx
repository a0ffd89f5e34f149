import type { ComponentChildren, Ref } from 'preact';
import { useId } from 'preact/hooks';
import { classes } from './button';
import { Icon } from '../icon';

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  optional?: boolean;
  hideLabel?: boolean;
}

interface Wires {
  id: string;
  'aria-describedby'?: string;
  'aria-invalid'?: boolean;
}

/** A label, a control, a hint and an error, connected for the ear as well. */
export function Field({
  label,
  hint,
  error,
  optional,
  hideLabel,
  children,
}: FieldProps & { children: (wires: Wires) => ComponentChildren }) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div class={classes('field', error && 'wrong')}>
      <label for={id} class={hideLabel ? 'unseen' : 'field-label'}>
        {label}
        {optional && <span class="field-optional"> (optional)</span>}
      </label>
      {children({
        id,
        ...(described && { 'aria-describedby': described }),
        ...(error && { 'aria-invalid': true }),
      })}
      {hint && (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`}>
          <Icon name="circle-alert" size={14} /> {error}
        </p>
      )}
    </div>
  );
}

export interface TextFieldProps extends FieldProps {
  value: string;
  onInput: (value: string) => void;
  type?: 'text' | 'password' | 'number' | 'url' | 'date' | 'search';
  mono?: boolean;
  placeholder?: string;
  autoComplete?: string;
  name?: string;
  inputMode?: 'text' | 'numeric' | 'url' | 'search';
  maxLength?: number;
  min?: string | number;
  max?: string | number;
  disabled?: boolean;
  required?: boolean;
  autofocus?: boolean;
  inputRef?: Ref<HTMLInputElement>;
  onBlur?: () => void;
  onKeyDown?: (event: KeyboardEvent) => void;
  list?: readonly string[];
}

/** A field of one line. */
export function TextField({
  label,
  hint,
  error,
  optional,
  hideLabel,
  value,
  onInput,
  mono,
  inputRef,
  list,
  autofocus,
  ...rest
}: TextFieldProps) {
  const listId = useId();
  return (
    <Field label={label} hint={hint} error={error} optional={optional ?? false} hideLabel={hideLabel ?? false}>
      {(wires) => (
        <>
          <input
            {...wires}
            {...(rest as object)}
            ref={inputRef ?? null}
            class={classes('input', mono && 'mono')}
            value={value}
            spellcheck={false}
            data-autofocus={autofocus || undefined}
            {...(list && ({ list: listId } as object))}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
          {list && (
            <datalist id={listId}>
              {list.map((entry) => (
                <option key={entry} value={entry} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

/** A field of several lines. */
export function TextArea({
  label,
  hint,
  error,
  optional,
  hideLabel,
  value,
  onInput,
  mono,
  rows = 4,
}: FieldProps & { value: string; onInput: (value: string) => void; mono?: boolean; rows?: number }) {
  return (
    <Field label={label} hint={hint} error={error} optional={optional ?? false} hideLabel={hideLabel ?? false}>
      {(wires) => (
        <textarea
          {...wires}
          class={classes('input', 'area', mono && 'mono')}
          rows={rows}
          value={value}
          spellcheck={false}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export interface Choice<T extends string> {
  value: T;
  label: string;
  disabled?: boolean;
}

/** A native list to choose from. */
export function SelectField<T extends string>({
  label,
  hint,
  error,
  optional,
  hideLabel,
  value,
  choices,
  onChange,
  disabled,
}: FieldProps & {
  value: T;
  choices: readonly Choice<T>[];
  onChange: (value: T) => void;
  disabled?: boolean;
}) {
  return (
    <Field label={label} hint={hint} error={error} optional={optional ?? false} hideLabel={hideLabel ?? false}>
      {(wires) => (
        <span class="select">
          <select
            {...wires}
            class="input"
            value={value}
            disabled={disabled}
            onChange={(event) => onChange(event.currentTarget.value as T)}
          >
            {choices.map((choice) => (
              <option key={choice.value} value={choice.value} disabled={choice.disabled}>
                {choice.label}
              </option>
            ))}
          </select>
          <Icon name="chevron-down" />
        </span>
      )}
    </Field>
  );
}

/** The field that finds things. `shortcut` is the key that leads there. */
export function SearchField({
  label,
  value,
  placeholder,
  onInput,
  onSubmit,
  shortcut,
  inputRef,
}: {
  label: string;
  value: string;
  placeholder?: string;
  onInput: (value: string) => void;
  onSubmit?: (value: string) => void;
  shortcut?: string;
  inputRef?: Ref<HTMLInputElement>;
}) {
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit?.(value);
      }}
    >
      <Icon name="search" />
      <input
        ref={inputRef ?? null}
        type="search"
        aria-label={label}
        placeholder={placeholder ?? label}
        value={value}
        autoComplete="off"
        spellcheck={false}
        aria-keyshortcuts={shortcut}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {shortcut && !value && <kbd aria-hidden="true">{shortcut}</kbd>}
    </form>
  );
}
