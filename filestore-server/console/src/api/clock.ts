// The server's clock, for texts that say "ago" and "left".
export { serverNow } from './call';
