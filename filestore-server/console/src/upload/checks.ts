// What can be known before a byte goes: the largest size, and the room of the organization.
import type { MeLimits, UsageReply } from 'filestore-client';
import { counted, size } from '../text/sizes';

/** Files of this size and more are sent in parts, for which the server has another limit. */
export const IN_PARTS = 1 << 20;

/** Returns why a file cannot be stored, or null. `ahead` has the bytes and files that go to the organization before. */
export function refusal(
  file: Pick<File, 'size'>,
  limits: MeLimits | undefined,
  usage: UsageReply | null,
  ahead: { bytes: number; files: number },
): string | null {
  const most = limits && (file.size < IN_PARTS ? limits.max_file_size : limits.max_resumable_size);
  if (most !== undefined && file.size > most) return `${size(file.size)} is over the limit of ${size(most)} for one file`;
  if (!usage) return null;
  const { quota_bytes, quota_files } = usage;
  if (quota_bytes !== null && usage.bytes + ahead.bytes + file.size > quota_bytes) {
    const left = Math.max(0, quota_bytes - usage.bytes - ahead.bytes);
    return `No room: ${size(left)} of the quota of ${size(quota_bytes)} is left`;
  }
  if (quota_files !== null && usage.files + ahead.files + 1 > quota_files) {
    return `No room: the quota is ${counted(quota_files, 'file')}`;
  }
  return null;
}

/** Returns why files cannot be one batch, or null. */
export function batchRefusal(files: readonly Pick<File, 'size'>[], limits: MeLimits | undefined): string | null {
  if (!limits) return null;
  if (files.length > limits.max_batch_items) return `at most ${counted(limits.max_batch_items, 'file')}`;
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  return bytes > limits.max_batch_size ? `at most ${size(limits.max_batch_size)} together` : null;
}
