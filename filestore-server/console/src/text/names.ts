/**
 * Names of files with their hidden characters made visible.
 *
 * A name is text of somebody else. Controls of direction can reorder it (`invoice_[RLO]gpj.exe` reads as
 * `invoice_exe.jpg`), and characters without width can make two names look the same.
 */

/** A stretch of visible text, or one hidden character. */
export type Piece = { text: string } | { hidden: Hidden };

export interface Hidden {
  /** The character itself. */
  character: string;
  /** Its abbreviation, for example `RLO`. */
  label: string;
  /** Its name in words, for a screen reader. */
  words: string;
}

const known: Record<number, [label: string, words: string]> = {
  0x00ad: ['SHY', 'soft hyphen'],
  0x034f: ['CGJ', 'combining grapheme joiner'],
  0x061c: ['ALM', 'Arabic letter mark'],
  0x115f: ['HCF', 'Hangul filler'],
  0x1160: ['HJF', 'Hangul filler'],
  0x180e: ['MVS', 'Mongolian vowel separator'],
  0x200b: ['ZWSP', 'zero width space'],
  0x200c: ['ZWNJ', 'zero width non-joiner'],
  0x200d: ['ZWJ', 'zero width joiner'],
  0x200e: ['LRM', 'left-to-right mark'],
  0x200f: ['RLM', 'right-to-left mark'],
  0x2028: ['LS', 'line separator'],
  0x2029: ['PS', 'paragraph separator'],
  0x202a: ['LRE', 'left-to-right embedding'],
  0x202b: ['RLE', 'right-to-left embedding'],
  0x202c: ['PDF', 'pop directional formatting'],
  0x202d: ['LRO', 'left-to-right override'],
  0x202e: ['RLO', 'right-to-left override'],
  0x2060: ['WJ', 'word joiner'],
  0x2066: ['LRI', 'left-to-right isolate'],
  0x2067: ['RLI', 'right-to-left isolate'],
  0x2068: ['FSI', 'first strong isolate'],
  0x2069: ['PDI', 'pop directional isolate'],
  0x3164: ['HF', 'Hangul filler'],
  0xfeff: ['BOM', 'byte order mark'],
  0xffa0: ['HHF', 'Hangul filler'],
  0x0009: ['TAB', 'tab'],
  0x000a: ['LF', 'line feed'],
  0x000d: ['CR', 'carriage return'],
  0x0000: ['NUL', 'null'],
  0x0020: ['SP', 'space'],
  0x00a0: ['NBSP', 'no-break space'],
};

/** Controls, format characters, surrogates, private use and unassigned code points, and separators of lines. */
const suspicious = /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;
const pictorial = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\u20e3]/u;
const selectable = /[\p{Extended_Pictographic}\p{Script=Han}\p{Script=Mongolian}\p{Script=Phags_Pa}\p{Sm}0-9#*]/u;
const joining =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{M}]/u;

/** Divides a name into visible text and hidden characters. */
export function pieces(name: string): Piece[] {
  const characters = [...name];
  const first = characters.findIndex((c) => !/\s/u.test(c));
  const last = characters.findLastIndex((c) => !/\s/u.test(c));
  const result: Piece[] = [];
  let text = '';

  characters.forEach((character, at) => {
    const atEnd = /\s/u.test(character) && (first === -1 || at < first || at > last);
    if (!atEnd && !isHidden(characters, at)) {
      text += character;
      return;
    }
    if (text) result.push({ text });
    text = '';
    result.push({ hidden: describe(character) });
  });
  if (text) result.push({ text });
  return result;
}

/** True if a name has hidden characters, so that the page must warn. */
export function hasHidden(name: string): boolean {
  return pieces(name).some((piece) => 'hidden' in piece);
}

/** The name as a screen reader says it, with the hidden characters in words. */
export function spoken(name: string): string {
  return pieces(name)
    .map((piece) => ('text' in piece ? piece.text : ` [${piece.hidden.words}] `))
    .join('')
    .trim();
}

function isHidden(characters: string[], at: number): boolean {
  const character = characters[at] ?? '';
  if (!suspicious.test(character)) return false;

  const before = characters[at - 1] ?? '';
  const after = characters[at + 1] ?? '';
  const code = character.codePointAt(0) ?? 0;
  if (code === 0x200d || code === 0x200c) {
    const inEmoji = code === 0x200d && pictorial.test(before) && pictorial.test(after);
    return !inEmoji && !(joining.test(before) && joining.test(after));
  }
  if ((code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0100 && code <= 0xe01ef)) return !selectable.test(before);
  return true;
}

function describe(character: string): Hidden {
  const code = character.codePointAt(0) ?? 0;
  const [label, words] = known[code] ?? [hex(code), `hidden character ${hex(code)}`];
  return { character, label, words };
}

function hex(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Splits a long name into a part that may be shortened and an end that stays visible, with its extension. */
export function splitForMiddle(name: string): [head: string, tail: string] {
  const characters = graphemes(name);
  if (characters.length <= 16) return [name, ''];
  const dot = characters.lastIndexOf('.');
  const extension = dot > 0 && characters.length - dot <= 9 ? characters.length - dot : 0;
  const end = characters.length - extension - 4;
  return [characters.slice(0, end).join(''), characters.slice(end).join('')];
}

/** Shortens an id or digest in the middle, for example `96f0de6db2b9…ffbe9`. */
export function shortId(id: string, head = 12, tail = 6): string {
  return id.length <= head + tail + 1 ? id : `${id.slice(0, head)}…${id.slice(-tail)}`;
}

/** Two letters for the badge of an organization, for example `AN` for `Atelier Nord`. */
export function initials(name: string): string {
  const words = name.split(/[\s_-]+/u).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const letters = words.length > 1 ? words.slice(0, 2).map((word) => graphemes(word)[0]) : graphemes(words[0] ?? '').slice(0, 2);
  return letters.join('').toUpperCase();
}

function graphemes(text: string): string[] {
  return [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)].map((part) => part.segment);
}
