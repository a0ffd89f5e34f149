import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { canRetry, isAbort, Problem } from '../../api/call';
import { detailOf, titleOf } from '../../text/words';
import { Button } from '../controls/button';
import { Id } from '../values/copy';
import { Icon } from '../icon';

/**
 * What failed, in its place: title by code, the server's own words, the request id, and *Try again* where the table of
 * errors says that it helps.
 */
export function ErrorBox({ error, onRetry, what }: { error: unknown; onRetry?: () => unknown; what?: string }) {
  if (isAbort(error)) return null;
  const problem = error instanceof Problem ? error : null;
  const scopes = problem?.status === 403 ? problem.allowed : undefined;
  return (
    <div class="error-box" role="alert">
      <Icon name={problem?.status === 403 ? 'lock' : 'triangle-alert'} size={18} />
      <div class="error-body">
        <p class="error-title">{what ? `${what}: ${lower(titleOf(error))}` : titleOf(error)}</p>
        <p class="error-text">{detailOf(error)}</p>
        {scopes && scopes.length > 0 && (
          <p class="error-text">
            Needed: <strong>{scopes.join(' or ')}</strong>. Ask the person who gave you the key for one with this scope.
          </p>
        )}
        <ErrorFacts problem={problem} />
        {onRetry && (problem === null || canRetry(error)) && <Retry after={problem?.retryAfter} onRetry={onRetry} />}
      </div>
    </div>
  );
}

function ErrorFacts({ problem }: { problem: Problem | null }) {
  if (!problem) return null;
  return (
    <p class="error-facts">
      {problem.field && <span>Field: {problem.field}</span>}
      {problem.limit !== undefined && <span>Limit: {problem.limit.toLocaleString('en-GB')}</span>}
      {problem.requestId && (
        <span>
          Request <Id value={problem.requestId} what="request id" />
        </span>
      )}
    </p>
  );
}

function Retry({ after, onRetry }: { after: number | undefined; onRetry: () => unknown }) {
  const [left, setLeft] = useState(Math.ceil(after ?? 0));
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setLeft(left - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
  return (
    <Button size="small" icon="rotate-cw" disabled={left > 0} onClick={onRetry}>
      {left > 0 ? `Try again in ${left} s` : 'Try again'}
    </Button>
  );
}

/** One line for a refusal within a form or dialog. */
export function ErrorLine({ error, children }: { error: unknown; children?: ComponentChildren }) {
  if (isAbort(error)) return null;
  const problem = error instanceof Problem ? error : null;
  return (
    <div class="error-line" role="alert">
      <Icon name="circle-alert" />
      <span>
        {children ?? detailOf(error)}
        {problem?.requestId && (
          <span class="error-request">
            {' '}
            Request <Id value={problem.requestId} what="request id" />
          </span>
        )}
      </span>
    </div>
  );
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
