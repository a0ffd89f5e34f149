// Bytes that the page shows: asked for with the key, kept as object URLs while they are shown.
import { useEffect, useState } from 'preact/hooks';
import { isAbort, request, type FileRecord } from '../../api/call';
import type { VariantSize } from 'filestore-client';

export interface Picture {
  url: string;
  bytes: number;
  type: string;
}
export interface Shown {
  picture: Picture | null;
  error: unknown;
}

/** Loads bytes when `key` changes; null loads nothing. What was there before goes when the new is here. */
export function useBytes(key: string | null, load: (signal: AbortSignal) => Promise<Response>): Shown {
  const [shown, setShown] = useState<Shown & { key: string | null }>({ key: null, picture: null, error: null });
  useEffect(() => {
    if (key === null) return;
    const end = new AbortController();
    let url: string | null = null;
    load(end.signal)
      .then((response) => response.blob())
      .then((blob) => {
        if (end.signal.aborted) return;
        url = URL.createObjectURL(blob);
        setShown({ key, picture: { url, bytes: blob.size, type: blob.type }, error: null });
      })
      .catch((error: unknown) => {
        if (!isAbort(error) && !end.signal.aborted) setShown({ key, picture: null, error });
      });
    return () => {
      end.abort(new DOMException('another picture is shown', 'AbortError'));
      if (url !== null) URL.revokeObjectURL(url);
    };
  }, [key]);
  return shown.key === key ? shown : { picture: null, error: null };
}

export type FitName = 'cover' | 'inside';

export const variant = (record: FileRecord, size: VariantSize, fit: FitName) => (signal: AbortSignal): Promise<Response> =>
  request('GET', '/files/{file_id}/{width}/{height}', {
    path: { file_id: record.file_id, width: size, height: size },
    query: { fit, v: record.sha256 },
    headers: { Accept: 'image/webp,image/*' },
    signal,
  });

export const original = (record: FileRecord, range?: string) => (signal: AbortSignal): Promise<Response> =>
  request('GET', '/files/{file_id}', {
    path: { file_id: record.file_id },
    // Bytes at a provider come through the service: the page's policy allows no other origin.
    query: { v: record.sha256, redirect: false },
    headers: range ? { Range: range } : {},
    signal,
  });
