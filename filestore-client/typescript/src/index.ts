export { uploadBatch, type BatchItem, type BatchOptions } from './batch.js';
export type { Source } from './bytes.js';
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
export { follow, type FollowOptions } from './follow.js';
export { files, type FileQuery } from './list.js';
export { Problem, type LocalCode } from './problem.js';
export type { RetryPolicy } from './retry.js';
export type * from './schema.js';
export { indexedDbStore, memoryStore, type StoredUpload, type UploadStore } from './store.js';
export type { Progress } from './transfer.js';
export {
  cancelUpload,
  fingerprintOf,
  replace,
  upload,
  uploadTo,
  type ReplaceOptions,
  type SendOptions,
  type UploadFields,
  type UploadOptions,
} from './upload.js';
export {
  signedUploadUrl,
  signedUrl,
  srcset,
  VARIANT_SIZES,
  variantUrl,
  type FileReference,
  type VariantOptions,
  type VariantSize,
} from './variant.js';
