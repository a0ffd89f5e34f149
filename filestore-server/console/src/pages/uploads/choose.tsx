// How files come in: chosen, dropped or pasted. Then the sub-system is that of the filter, or it is asked for.
import { computed, signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { organization, organizationName, subSystem, subSystems } from '../../data/place';
import { Button } from '../../parts/controls/button';
import { Checkbox } from '../../parts/controls/checkbox';
import { CancelButton, Dialog } from '../../parts/dialog';
import { TextField } from '../../parts/controls/field';
import { say } from '../../parts/notes/toast';
import { route } from '../../router';
import { may, me } from '../../session';
import { count, counted, size } from '../../text/sizes';
import { batchRefusal } from '../../upload/checks';
import { filesOf, hasFiles, take, type Dropped } from '../../upload/dropped';
import type { Target } from '../../upload/item';
import { add, addBatch, addUnread } from '../../upload/queue';
import { begun } from '../../upload/unfinished';

const SUB_SYSTEM = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Where files go, if a page says so. Otherwise the organization and the filter of the address decide. */
export const uploadTarget = signal<Target | null>(null);

/** The target, or null if the sub-system must be asked for. */
export const target = computed<Target | null>(() => {
  if (uploadTarget.value) return uploadTarget.value;
  const [org, sub] = [organization.value, subSystem.value];
  return org !== null && sub !== null && route.value.params['org'] !== undefined ? { organization: org, subSystem: sub } : null;
});

/** Files whose sub-system is asked for. They outlive the session, as the queue does. */
const asked = signal<{ organization: string; files: File[] } | null>(null);
/** The last answer for each organization. */
const answers = new Map<string, string>();

/** Asks the browser for files or for a folder, and uploads them. With `ask`, all choices are shown before. */
export function chooseFiles({ folder = false, ask = false } = {}): void {
  if (!may('write')) return;
  const input = document.createElement('input');
  input.type = 'file';
  input.multiple = true;
  input.webkitdirectory = folder;
  input.onchange = () => void receive({ entries: [], files: [...(input.files ?? [])] }, ask);
  input.click();
}

/** Takes in files from wherever they come. */
async function receive(dropped: Dropped, ask = false): Promise<void> {
  const to = ask ? null : target.peek();
  const org = to?.organization ?? organization.peek();
  if (org === null) {
    say('Open an organization first, then drop the files again.');
    return;
  }
  const unsure: File[] = [];
  const unread: string[] = [];
  let any = false;
  let queued = 0;
  for await (const files of filesOf(dropped, unread)) {
    any ||= files.length > 0;
    // What an earlier visit has begun goes on at its own sub-system, unless it is to go to another.
    const known = await begun(org, to?.subSystem ?? null, files);
    for (const [file, entry] of known) add([file], { organization: org, subSystem: entry.sub_system });
    const fresh = files.filter((file) => !known.has(file));
    if (to) queued += add(fresh, to);
    else unsure.push(...fresh);
  }
  addUnread(unread, to ?? { organization: org, subSystem: '' });
  if (unsure.length > 0) asked.value = { organization: org, files: unsure };
  sayLeftOut(unread.length, queued);
  if (!any && unread.length === 0) say('There are no files in there.');
}

/** Says what does not go into the queue. */
function sayLeftOut(unread: number, queued: number): void {
  const parts = [
    ...(unread > 0 ? [`${count(unread)} could not be read`] : []),
    ...(queued > 0 ? [`${counted(queued, 'file')} ${queued === 1 ? 'is' : 'are'} in the queue already`] : []),
  ];
  if (parts.length > 0) say(`${parts.join('. ')}.`);
}

/** Stands once in the page: takes what is dropped or pasted anywhere, and asks what is not known. */
export function DropHost() {
  const [over, setOver] = useState(false);
  useEffect(() => listenToDrops(setOver), []);
  const question = asked.value;
  return (
    <>
      {over && <DropSign />}
      {question && <TargetDialog key={question.files.length} {...question} onClose={() => (asked.value = null)} />}
    </>
  );
}

function DropSign() {
  const to = target.value;
  const org = to?.organization ?? organization.value;
  if (org === null) return null;
  return (
    <div class="drop-sign">
      <p>
        Drop to upload to {to ? <strong>{to.subSystem}</strong> : 'a sub-system of your choice'}
        <span>{organizationName(org)}</span>
      </p>
    </div>
  );
}

/** True if the place of the event has a use of its own for files. */
const isTaken = (event: Event): boolean =>
  event.defaultPrevented || (event.target instanceof Element && event.target.closest('[data-drop], dialog') !== null);

function listenToDrops(show: (over: boolean) => void): () => void {
  const ends = new AbortController();
  const { signal: ended } = ends;
  const on = <K extends keyof WindowEventMap>(kind: K, act: (event: WindowEventMap[K]) => void) =>
    addEventListener(kind, act, { signal: ended });

  on('dragover', (event) => {
    if (!hasFiles(event.dataTransfer) || !may('write')) return;
    const taken = isTaken(event);
    show(!taken);
    if (taken) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = 'copy';
  });
  on('dragleave', (event) => {
    // Only the edge of the window: inside of it, the next element gets an event of its own.
    if (event.relatedTarget === null) show(false);
  });
  on('drop', (event) => {
    show(false);
    if (!hasFiles(event.dataTransfer) || !event.dataTransfer || isTaken(event) || !may('write')) return;
    event.preventDefault();
    void receive(take(event.dataTransfer));
  });
  on('paste', (event) => {
    if (!event.clipboardData || !hasFiles(event.clipboardData) || isTaken(event) || !may('write')) return;
    event.preventDefault();
    void receive(take(event.clipboardData));
  });
  return () => ends.abort();
}

function TargetDialog({ organization: org, files, onClose }: { organization: string; files: File[]; onClose: () => void }) {
  const [sub, setSub] = useState(subSystem.peek() ?? answers.get(org) ?? subSystems.peek()?.[0]?.sub_system ?? '');
  const [whole, setWhole] = useState(false);
  const wrong = sub !== '' && !SUB_SYSTEM.test(sub) ? 'Letters, digits, . _ and -, at most 64.' : undefined;
  const tooMuch = batchRefusal(files, me.value?.limits);
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  const start = () => {
    if (sub === '' || wrong) return;
    answers.set(org, sub);
    onClose();
    const to = { organization: org, subSystem: sub };
    if (whole) addBatch(files, to);
    else sayLeftOut(0, add(files, to));
  };
  return (
    <Dialog
      title={`Upload ${counted(files.length, 'file')}`}
      onClose={onClose}
      onSubmit={start}
      actions={
        <>
          <CancelButton onClick={onClose} />
          <Button type="submit" kind="primary" disabled={sub === '' || wrong !== undefined}>Upload</Button>
        </>
      }
    >
      <p class="dialog-text">
        {size(bytes)} to {organizationName(org)}.
      </p>
      <TextField
        label="Sub-system"
        hint="The part of your application that the files belong to."
        value={sub}
        onInput={setSub}
        error={wrong}
        mono
        autofocus
        autoComplete="off"
        list={(subSystems.value ?? []).map((one) => one.sub_system)}
      />
      {files.length > 1 && (
        <Checkbox
          label="All or nothing"
          hint={tooMuch ? `Not for so many: ${tooMuch}.` : 'Stores all of them together. If one is refused, none is stored.'}
          checked={whole && tooMuch === null}
          disabled={tooMuch !== null}
          onChange={setWhole}
        />
      )}
    </Dialog>
  );
}
