// The second script: pages of administration. `app.tsx` loads it when one of them is opened.
export { Keys } from './store/keys';
export { Organizations } from './store/organizations';
export { Overview } from './store/overview';
export { Provider, Providers } from './store/providers';
export { Storage } from './storage/storage';
export { Webhook } from './store/webhook';
export { Webhooks } from './store/webhooks';
export { Work } from './store/work';
