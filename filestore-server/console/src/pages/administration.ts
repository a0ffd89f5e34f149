// The second script: pages of administration. `app.tsx` loads it when one of them is opened.
export { About } from './about/about';
export { Activity } from './activity/activity';
export { Backups } from './store/backups';
export { Checks } from './store/checks';
export { Keys } from './store/keys';
export { Organizations } from './store/organizations';
export { Overview } from './store/overview';
export { Provider, Providers } from './store/providers';
export { Storage } from './storage/storage';
export { Webhook } from './store/webhook';
export { Webhooks } from './store/webhooks';
export { Work } from './store/work';
