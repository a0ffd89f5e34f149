// Bytes and digests, with web standards alone.

/** The bytes of a file. A `File` also has a name and the time of its last change. */
export type Source = Blob | ArrayBuffer | ArrayBufferView;

export function blobOf(source: Source): Blob {
  return source instanceof Blob ? source : new Blob([source as BlobPart]);
}

/** Returns the name of a `File`, or an empty text. */
export function nameOf(source: Source): string {
  return 'name' in source && typeof source.name === 'string' ? source.name : '';
}

/** Returns the time of the last change of a `File`, in milliseconds since 1970. */
export function changedAt(source: Source): number | undefined {
  return 'lastModified' in source && typeof source.lastModified === 'number' ? source.lastModified : undefined;
}

/** Returns the path of a `File` within the folder that was chosen, or nothing. */
export function folderPathOf(source: Source): string | undefined {
  return ('webkitRelativePath' in source && String(source.webkitRelativePath)) || undefined;
}

/** Returns a random text of 32 hexadecimal digits. Works without HTTPS, too. */
export function randomName(): string {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}

/** Returns the SHA-256, or nothing on a page that was loaded without HTTPS, where browsers do not compute digests. */
export async function sha256(bytes: ArrayBuffer): Promise<Uint8Array | undefined> {
  const subtle = (crypto as Partial<Crypto>).subtle;
  return subtle && new Uint8Array(await subtle.digest('SHA-256', bytes));
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

export function base64OfText(text: string): string {
  return base64(new TextEncoder().encode(text));
}
