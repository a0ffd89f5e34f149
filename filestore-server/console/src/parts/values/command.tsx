import { Fragment } from 'preact';
import { CopyIcon } from './copy';

/** Commands to copy into a terminal. Each entry is one command. A command may have several lines. */
export function Command({ commands, label = 'command' }: { commands: readonly string[]; label?: string }) {
  const text = commands.join('\n');
  return (
    <div class="command">
      <pre tabIndex={0} aria-label={label}>
        {commands.map((command, index) => (
          <code key={index} class="command-line">
            {command.split(' ').map((word, at) => (
              <Fragment key={at}>
                {at > 0 && ' '}
                <span class="command-word">{word}</span>
              </Fragment>
            ))}
          </code>
        ))}
      </pre>
      <CopyIcon text={text} what={label} />
    </div>
  );
}
