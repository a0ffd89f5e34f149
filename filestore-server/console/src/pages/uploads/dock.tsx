// The uploads, wherever the visitor is: a dock above the page, a box in the navigation, and a strip on a phone.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { organization } from '../../data/place';
import { TwoToneBar } from '../../parts/bar';
import { IconButton } from '../../parts/controls/button';
import { Icon } from '../../parts/icon';
import { href, route } from '../../router';
import { usePhone } from '../../shell/width';
import { count, counted, size } from '../../text/sizes';
import { short } from '../../text/times';
import type { Item, State } from '../../upload/item';
import { all, clear, pauseAll, resumeAll, totals, type Totals } from '../../upload/queue';
import { unfinished } from '../../upload/unfinished';
import { DropHost } from './choose';
import { UnfinishedRow, UploadRow } from './row';

/** Rows of one state that the dock shows. The page shows more. */
const ROWS = 12;
const ORDER: readonly State[] = ['running', 'paused', 'failed', 'waiting', 'stored'];

const isOpen = signal(true);
/** Whether the visitor has closed the note about unfinished uploads. */
const isNoteClosed = signal(false);

/** The items in the order in which they matter, at most `rows` of each state. */
export function sorted(rows: number): Item[] {
  const found = new Map<State, Item[]>(ORDER.map((state) => [state, []]));
  for (const item of all()) {
    const list = found.get(item.state);
    // Of what is stored, the newest are shown.
    if (item.state === 'stored') list?.unshift(item);
    else if (list && list.length < rows) list.push(item);
    if (list && list.length > rows) list.pop();
  }
  return ORDER.flatMap((state) => found.get(state) ?? []);
}

/** What the dock says of itself. */
export function heading({ active, paused, files, stored, failed }: Totals): string {
  if (active > 0) {
    const targets = new Set(all().filter((item) => item.state === 'running' || item.state === 'waiting').map((item) => item.target.subSystem));
    return targets.size === 1 ? `Uploading to ${[...targets][0]}` : `Uploading ${counted(files - stored, 'file')}`;
  }
  if (paused > 0) return `${counted(paused, 'upload')} paused`;
  if (stored > 0) return `${counted(stored, 'file')} stored`;
  return failed > 0 ? `${counted(failed, 'file')} not stored` : 'Uploads';
}

export function Sums({ sums }: { sums: Totals }) {
  const left = sums.speed === null ? null : ((sums.bytes - sums.storedBytes) / sums.speed) * 1000;
  const safe = `${size(sums.storedBytes)} of ${size(sums.bytes)} is safe`;
  return (
    <>
      <TwoToneBar label="All uploads" text={safe} done={sums.storedBytes} sent={sums.sentBytes} total={Math.max(sums.bytes, 1)} />
      <p class="dock-sums">
        <span><strong>{count(sums.stored)} of {counted(sums.files, 'file')}</strong>, {safe}</span>
        {sums.speed !== null && left !== null && <span>{size(sums.speed)}/s, {short(left)} left</span>}
      </p>
    </>
  );
}

/** The two tones, in words, and what failed. */
export function Legend({ failed }: { failed: number }) {
  return (
    <footer class="dock-foot">
      <span class="dock-tone done">safe on the server</span>
      <span class="dock-tone sent">sent</span>
      {failed > 0 && <span class="dock-failed">{count(failed)} failed</span>}
    </footer>
  );
}

/** The buttons for all uploads. */
export function AllActs({ sums }: { sums: Totals }) {
  return (
    <>
      {sums.active > 0 && <IconButton name="Pause all uploads" icon="pause" onClick={pauseAll} />}
      {sums.active === 0 && sums.paused > 0 && <IconButton name="Continue all uploads" icon="play" onClick={resumeAll} />}
    </>
  );
}

export function Dock() {
  return (
    <>
      <DropHost />
      {!usePhone() && route.value.name !== 'uploads' && <Box />}
    </>
  );
}

function Box() {
  const sums = totals.value;
  // Once everything is stored, the dock stays for the page on which it ended.
  useEffect(() => {
    const { active, paused, failed, stored } = totals.peek();
    if (active + paused + failed === 0 && stored > 0) clear(true);
  }, [route.value.path]);
  const rows = sorted(ROWS);
  if (rows.length === 0) return <UnfinishedNote />;
  const isDone = sums.active + sums.paused === 0;
  return (
    <section class="dock" aria-label="Uploads">
      <header class="dock-head">
        <h2>{heading(sums)}</h2>
        <AllActs sums={sums} />
        <IconButton
          name={isOpen.value ? 'Fold the uploads' : 'Unfold the uploads'}
          icon={isOpen.value ? 'chevron-down' : 'chevron-up'}
          expanded={isOpen.value}
          onClick={() => (isOpen.value = !isOpen.value)}
        />
        {isDone && <IconButton name="Close the uploads" icon="x" onClick={() => clear(true)} />}
      </header>
      {!isDone && <div class="dock-all"><Sums sums={sums} /></div>}
      {isOpen.value && (
        <>
          <ul class="dock-list" tabIndex={0} aria-label="Files">
            {rows.map((item) => <UploadRow key={item.id} item={item} />)}
          </ul>
          <More shown={rows.length} />
          <Legend failed={sums.failed} />
        </>
      )}
    </section>
  );
}

function More({ shown }: { shown: number }) {
  const org = organization.value;
  const more = all().length - shown;
  if (more <= 0 || org === null) return null;
  return <a class="dock-more link" href={href(`org/${org}/uploads`)}>{counted(more, 'more file')}</a>;
}

/** Says that an earlier visit has left uploads, and how they go on. */
function UnfinishedNote() {
  const entries = unfinished.value;
  if (entries.length === 0 || isNoteClosed.value) return null;
  return (
    <section class="dock" aria-label="Unfinished uploads">
      <header class="dock-head">
        <h2>{counted(entries.length, 'upload')} not finished</h2>
        <IconButton name="Close" icon="x" onClick={() => (isNoteClosed.value = true)} />
      </header>
      <p class="dock-text">Drop the same files again, and they go on where they were.</p>
      <ul class="dock-list" tabIndex={0} aria-label="Unfinished files">
        {entries.slice(0, ROWS).map((entry) => <UnfinishedRow key={entry.fingerprint} entry={entry} />)}
      </ul>
    </section>
  );
}

function Short({ class: name }: { class: string }) {
  const sums = totals.value;
  const org = organization.value;
  if (sums.active + sums.paused === 0 || org === null) return null;
  const text = `${count(sums.stored)} of ${count(sums.files)}`;
  return (
    <a class={name} href={href(`org/${org}/uploads`)} title={`${heading(sums)}: ${text}`}>
      <Icon name="upload" />
      <span class="side-progress-words"><strong>{sums.active > 0 ? 'Uploading' : 'Paused'}</strong><span>{text}</span></span>
      <TwoToneBar label="Uploads" text={`${text} files`} done={sums.storedBytes} sent={sums.sentBytes} total={Math.max(sums.bytes, 1)} />
    </a>
  );
}

/** The box in the navigation. */
export const SideProgress = () => <Short class="side-progress" />;

/** The strip below the head of a page, on a phone. */
export const PhoneProgress = () => <Short class="phone-progress" />;
