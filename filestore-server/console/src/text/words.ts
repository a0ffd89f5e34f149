// Words that more than one page needs: what each error means for a person.
import { Problem } from '../api/call';

const TITLES: Partial<Record<string, string>> = {
  unreachable: 'No connection to the server',
  not_filestore: 'Something else answered in the place of filestore',
  forbidden: 'This key may not do that',
  not_found: 'Not there, or not yours',
  unauthorized: 'The key is not accepted',
  precondition_failed: 'Somebody changed it meanwhile',
  conflict: 'Somebody changed it at the same moment',
  already_purging: 'Already being removed',
  invalid_transition: 'Its state does not allow that',
  too_large: 'Too large',
  too_many_items: 'Too many at once',
  quota_exceeded: 'The organization has reached its quota',
  provider_unavailable: 'The storage provider does not answer',
  provider_inactive: 'The storage provider takes no new files',
  binding_required: 'The organization needs a binding first',
  storage_full: 'The disk of the server is full',
  database_full: 'The database of the server is full',
  busy: 'The server is busy',
  rate_limited: 'Too many requests',
  not_ready: 'The server is starting',
  events_gone: 'The log no longer reaches back that far',
  events_off: 'Events are switched off',
  not_an_image: 'Not a picture',
  corrupt_image: 'The picture is damaged',
  image_too_large: 'The picture has too many pixels',
  conversion_failed: 'No picture could be made of it',
  record_damaged: 'The record is damaged',
  internal: 'The server failed',
  outcome_unknown: 'Not known whether it was done',
};

/** A heading for what went wrong. */
export function titleOf(error: unknown): string {
  if (!(error instanceof Problem)) return 'Something in this page failed';
  return TITLES[error.code] ?? (error.status >= 500 ? 'The server failed' : 'The server said no');
}

/** What the server says of it, as a sentence. */
export function detailOf(error: unknown): string {
  if (!(error instanceof Problem)) return error instanceof Error ? error.message : String(error);
  if (error.code === 'unreachable') return 'Nothing answered. The page tries again by itself when the connection is back.';
  const text = error.detail;
  return text ? `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}` : '';
}
