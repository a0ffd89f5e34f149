// Addresses of image variants, and signed links.
import type { Connection } from './call.js';
import type { FileRecord, Fit, SignRequest, SignUploadRequest } from './schema.js';

/** The sides of variants, in pixels. */
export const VARIANT_SIZES = [200, 250, 300, 400, 500, 700, 1000] as const;

export type VariantSize = (typeof VARIANT_SIZES)[number];

/** What a variant shows. */
export interface VariantOptions {
  /** `cover` (default): a square from the centre. `inside`: the whole picture. */
  fit?: Fit | undefined;
  /** All frames of an animation. The operator can switch them off. */
  animated?: boolean | undefined;
}

/** A file by its id, or by its record. With the record, caches can keep a variant for a year. */
export type FileReference = string | Pick<FileRecord, 'file_id' | 'sha256'>;

/**
 * Returns the address of a variant, for example for `src`.
 *
 * A browser asks it without a key. So a page without an open server needs {@link signedUrl}, or a service of yours
 * that passes the picture on.
 */
export function variantUrl(
  server: Connection,
  file: FileReference,
  size: VariantSize,
  options: VariantOptions = {},
): string {
  const { file_id, sha256 } = typeof file === 'string' ? { file_id: file, sha256: undefined } : file;
  return server.address('GET', '/files/{file_id}/{width}/{height}', {
    path: { file_id, width: size, height: size },
    query: { fit: options.fit, animated: options.animated ? 'true' : undefined, v: sha256 ?? undefined },
  });
}

/**
 * Returns the `srcset` of a picture: its variants with their true widths, each width once.
 *
 * ```ts
 * image.srcset = srcset(server, record, { fit: 'inside' });
 * image.sizes = '(max-width: 700px) 100vw, 700px';
 * ```
 */
export function srcset(
  server: Connection,
  record: Pick<FileRecord, 'file_id' | 'sha256' | 'width' | 'height'>,
  options: VariantOptions & { sizes?: readonly VariantSize[] } = {},
): string {
  const widths = new Map<number, string>();
  for (const size of options.sizes ?? VARIANT_SIZES) {
    const width = variantWidth(record, size, options.fit);
    if (!widths.has(width)) widths.set(width, `${variantUrl(server, record, size, options)} ${width}w`);
  }
  return [...widths.values()].join(', ');
}

/** Returns the width of a variant in pixels. Variants are never larger than the picture. */
function variantWidth(record: Pick<FileRecord, 'width' | 'height'>, size: number, fit: Fit = 'cover'): number {
  const { width, height } = record;
  if (!width || !height) return size;
  const longest = Math.max(width, height);
  if (longest <= size) return width;
  if (fit === 'cover') return Math.min(size, width, height);
  return Math.max(1, Math.round((width * size) / longest));
}

/** Returns an absolute signed URL that reads a file, or a variant if `size` is given, without a key. */
export async function signedUrl(
  server: Connection,
  file_id: string,
  options: SignRequest = {},
  signal?: AbortSignal,
): Promise<{ url: string; expires_at: string }> {
  const { data } = await server.call('POST', '/files/{file_id}/sign', { path: { file_id }, body: options, signal });
  return { ...data, url: server.link(data.url) };
}

/** Returns an absolute signed URL that uploads one file without a key, for example with `uploadTo`. */
export async function signedUploadUrl(
  server: Connection,
  options: SignUploadRequest,
  signal?: AbortSignal,
): Promise<{ url: string; expires_at: string }> {
  const { data } = await server.call('POST', '/files/sign-upload', { body: options, signal });
  return { ...data, url: server.link(data.url) };
}
