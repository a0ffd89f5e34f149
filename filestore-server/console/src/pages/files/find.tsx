// The field that finds: an id opens its file, anything else is a part of a name.
import { useEffect, useRef, useState } from 'preact/hooks';
import { SearchField } from '../../parts/controls/field';
import { go, route } from '../../router';
import { findField } from '../../shell/keys';
import { setFilters } from './filters';

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i;

export function FindField() {
  const query = route.value.query.get('name_contains') ?? '';
  const [text, setText] = useState(query);
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => setText(query), [query]);
  useEffect(() => {
    findField.value = input.current;
    return () => {
      clearTimeout(timer.current);
      findField.value = null;
    };
  }, []);
  const search = (value: string) => {
    clearTimeout(timer.current);
    const org = route.peek().params['org'] ?? '';
    if (ULID.test(value.trim())) go(`org/${org}/files/${value.trim().toUpperCase()}`);
    else if (value !== (route.peek().query.get('name_contains') ?? '')) setFilters({ name_contains: value || null }, true);
  };
  return (
    <SearchField label="Name contains, or a file id" value={text} shortcut="/" inputRef={input}
      onInput={(value) => {
        setText(value);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => search(value), 250);
      }}
      onSubmit={search} />
  );
}
