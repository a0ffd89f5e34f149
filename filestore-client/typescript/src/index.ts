export {
  Connection,
  type ConnectionOptions,
  type Method,
  type OperationOf,
  type OptionsOf,
  type PathOf,
  type Reply,
  type ReplyOf,
} from './call.js';
export { Problem, type LocalCode } from './problem.js';
export type { RetryPolicy } from './retry.js';
export type * from './schema.js';
