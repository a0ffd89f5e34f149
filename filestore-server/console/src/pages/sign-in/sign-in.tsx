// One field for the key, and how to make a first one.
import { useEffect, useState } from 'preact/hooks';
import { call, canRetry, Problem } from '../../api/call';
import { Button } from '../../parts/controls/button';
import { Command } from '../../parts/values/command';
import { ErrorBox } from '../../parts/notes/error';
import { Icon } from '../../parts/icon';
import { IconButton } from '../../parts/controls/button';
import { go, route } from '../../router';
import { keyIsWhole, signIn } from '../../session';
import { ThemeButton } from '../../shell/shell';

const CUT = 'This is not a whole key. A key is fsk_ and 72 hexadecimal digits: perhaps the end was cut off.';
const UNKNOWN = 'The server does not know this key, or it was revoked or has ended.';

export function SignIn({ reason }: { reason: string | null }) {
  const [key, setKey] = useState('');
  const [seen, setSeen] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [answers, setAnswers] = useState<'yes' | 'no' | null>(null);

  useEffect(() => {
    document.title = 'Sign in · filestore';
    call('GET', '/health-checks/ready').then(() => setAnswers('yes'), (problem: unknown) => {
      setAnswers(problem instanceof Problem && problem.status === 401 ? 'yes' : 'no');
    });
  }, []);

  async function submit(): Promise<void> {
    const text = key.trim();
    setError(null);
    setWrong(null);
    if (text === '') return setWrong('Paste the key first.');
    setBusy(true);
    try {
      if ((await keyIsWhole(text)) === false) return setWrong(CUT);
      await signIn(text);
      if (['sign-in', 'signed-out'].includes(route.value.name)) go('', { replace: true });
    } catch (problem) {
      if (problem instanceof Problem && problem.status === 401) setWrong(UNKNOWN);
      else setError(problem);
    } finally {
      setBusy(false);
    }
  }

  return (
    <div class="sign-in">
      <main class="sign-in-card">
        <div class="sign-in-brand">
          <span class="switcher-mark brand" aria-hidden="true">f</span>
          <span>filestore</span>
          <span class="sign-in-host">{location.host}</span>
        </div>
        <h1 class="headline">Sign in with a key</h1>
        {reason !== null && (
          <p class="sign-in-reason" role="alert"><Icon name="info" />{reason}</p>
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void submit();
          }}
        >
          <input class="unseen" type="text" name="username" autoComplete="username" value={location.host} readOnly tabIndex={-1} aria-hidden="true" />
          <label class="field-label" for="key">API key</label>
          <div class={`key-field ${wrong ? 'wrong' : ''}`}>
            <input
              id="key"
              class="input mono"
              type={(seen ? 'text' : 'password') as 'password'}
              name="password"
              autoComplete="current-password"
              autoFocus
              spellcheck={false}
              placeholder="fsk_…"
              value={key}
              aria-invalid={wrong !== null}
              aria-describedby={wrong !== null ? 'key-wrong' : 'key-hint'}
              onInput={(event) => {
                setKey(event.currentTarget.value);
                setWrong(null);
              }}
            />
            <IconButton name={seen ? 'Hide the key' : 'Show the key'} icon={seen ? 'eye-off' : 'eye'} pressed={seen} onClick={() => setSeen(!seen)} />
          </div>
          {wrong !== null ? (
            <p class="field-error" id="key-wrong" role="alert"><Icon name="circle-alert" size={14} /> {wrong}</p>
          ) : (
            <p class="field-hint" id="key-hint">The key stays in this tab. When you close the tab, it is gone.</p>
          )}
          {error !== null && <ErrorBox error={error} {...(canRetry(error) ? { onRetry: submit } : {})} />}
          <Button type="submit" kind="primary" class="sign-in-button" busy={busy}>Sign in</Button>
        </form>
        <details class="sign-in-help">
          <summary>No key yet?</summary>
          <p>Make one on the machine of the server:</p>
          <Command commands={["filestore key create --name me --scopes admin --organizations '*'"]} label="command" />
        </details>
        <footer class="sign-in-foot">
          <span>
            {answers === null ? 'Asking the server…' : answers === 'yes' ? 'The server answers.' : 'The server does not answer, or is not ready.'}
          </span>
          <ThemeButton />
        </footer>
      </main>
    </div>
  );
}
