// The second script: pages of administration. `app.tsx` loads it when one of them is opened.
export { Overview } from './store/overview';
export { Storage } from './storage/storage';
export { Keys } from './store/keys';
export { Webhook } from './store/webhook';
export { Webhooks } from './store/webhooks';
