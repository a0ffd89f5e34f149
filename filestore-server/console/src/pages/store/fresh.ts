import { signal } from '@preact/signals';
import type { NewKeyReply, NewWebhookReply } from '../../api/call';
import { onEnd } from '../../session';

/** The key that was made or rotated last, with its secret. Stays while the reader visits other pages, until it is closed. */
export const freshKey = signal<{ key: NewKeyReply; rotated: boolean } | null>(null);

/** The webhook that was made or rotated last, with its secret. */
export const freshWebhook = signal<NewWebhookReply | null>(null);

onEnd(() => {
  freshKey.value = null;
  freshWebhook.value = null;
});
