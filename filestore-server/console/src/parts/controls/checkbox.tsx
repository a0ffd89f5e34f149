import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { classes } from './button';

/** A box to tick. Native, so that every browser and screen reader knows it. */
export function Checkbox({
  label,
  hint,
  hideLabel,
  checked,
  mixed,
  disabled,
  onChange,
  onClick,
}: {
  label: ComponentChildren;
  hint?: ComponentChildren;
  hideLabel?: boolean;
  checked: boolean;
  mixed?: boolean;
  disabled?: boolean;
  onChange?: (checked: boolean) => void;
  /** For ranges: sees the Shift key. */
  onClick?: (event: MouseEvent) => void;
}) {
  const box = useRef<HTMLInputElement>(null);
  const id = useId();
  useEffect(() => {
    if (box.current) box.current.indeterminate = mixed === true;
  }, [mixed]);

  return (
    <span class={classes('check', disabled && 'off')}>
      <input
        ref={box}
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onClick={onClick}
        onChange={(event) => onChange?.(event.currentTarget.checked)}
      />
      <label for={id} class={hideLabel ? 'unseen' : undefined}>
        {label}
      </label>
      {hint && (
        <span class="check-hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </span>
  );
}

export interface RadioChoice<T extends string> {
  value: T;
  label: ComponentChildren;
  hint?: ComponentChildren;
  disabled?: boolean;
}

/** One of several, each with a sentence of explanation. */
export function Radios<T extends string>({
  legend,
  value,
  choices,
  onChange,
  row,
  hideLegend,
}: {
  legend: string;
  value: T;
  choices: readonly RadioChoice<T>[];
  onChange: (value: T) => void;
  /** Beside each other instead of below each other. */
  row?: boolean;
  hideLegend?: boolean;
}) {
  const group = useId();
  return (
    <fieldset class={classes('radios', row && 'row')}>
      <legend class={hideLegend ? 'unseen' : 'field-label'}>{legend}</legend>
      {choices.map((choice) => {
        const id = `${group}-${choice.value}`;
        return (
          <label key={choice.value} class={classes('radio', choice.value === value && 'chosen', choice.disabled && 'off')}>
            <input
              type="radio"
              name={group}
              value={choice.value}
              checked={choice.value === value}
              disabled={choice.disabled}
              aria-labelledby={`${id}-label`}
              aria-describedby={choice.hint ? `${id}-hint` : undefined}
              onChange={() => onChange(choice.value)}
            />
            <span class="radio-text">
              <span id={`${id}-label`} class="radio-label">
                {choice.label}
              </span>
              {choice.hint && (
                <span id={`${id}-hint`} class="radio-hint">
                  {choice.hint}
                </span>
              )}
            </span>
          </label>
        );
      })}
    </fieldset>
  );
}
