// One upload, as a row of the dock and of the page.
import type { StoredUpload } from 'filestore-client';
import { TwoToneBar } from '../../parts/bar';
import { IconButton } from '../../parts/controls/button';
import { ask } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Name } from '../../parts/values/name';
import { sayError } from '../../parts/notes/toast';
import { href } from '../../router';
import { spoken } from '../../text/names';
import { size } from '../../text/sizes';
import { when } from '../../text/times';
import { detailOf } from '../../text/words';
import type { Item } from '../../upload/item';
import { pause, remove, resume } from '../../upload/queue';
import { giveUp } from '../../upload/unfinished';
import { Problem } from '../../api/call';
import { Glyph, Thumb } from '../files/thumb';

/** The sign of a file by the end of its name, until there is a picture. */
export function Sign({ name }: { name: string }) {
  const ext = /\.([^.]{1,4})$/.exec(name)?.[1] ?? '';
  return (
    <span class="thumb small page-like">
      <Glyph record={{ ext, mime_type: '' }} small />
    </span>
  );
}

export function UploadRow({ item }: { item: Item }) {
  void item.changed.value;
  const { state, record } = item;
  return (
    <li class={`upload-row ${state}`}>
      {record ? <Thumb record={record} small /> : <Sign name={item.file?.name ?? item.name} />}
      <div class="upload-main">
        <p class="upload-name">
          {record && item.count === 1 ? (
            <a class="upload-link" href={href(`org/${record.organization_id}/files/${record.file_id}`)}><Name name={item.name} /></a>
          ) : (
            <Name name={item.name} />
          )}
        </p>
        {(state === 'running' || (state === 'paused' && item.stored > 0)) && (
          <TwoToneBar label={item.name} text={said(item)} done={item.stored} sent={item.sent} total={Math.max(item.size, 1)} />
        )}
        <p class="upload-under">{under(item)}</p>
        {item.problem instanceof Problem && item.problem.requestId && (
          <p class="upload-request mono">{item.problem.requestId}</p>
        )}
      </div>
      <Acts item={item} />
    </li>
  );
}

const said = (item: Item): string => `${size(item.stored)} of ${size(item.size)} safe`;

function under(item: Item): string {
  switch (item.state) {
    case 'stored':
      return `Stored, ${size(item.size)}`;
    case 'failed':
      return refused(item);
    case 'waiting':
      return `Waiting, ${size(item.size)}${item.isDisguised ? '. The name has a hidden character' : ''}`;
    case 'paused':
      return `Paused, ${size(item.stored)} of ${size(item.size)}`;
    case 'running': {
      const resumed = item.resumedAt > 0 ? `, resumed at ${size(item.resumedAt)}` : '';
      const disguised = item.isDisguised ? '. The name has a hidden character' : '';
      return `${size(item.stored)} of ${size(item.size)}${resumed}${disguised}`;
    }
  }
}

/** Why it was not stored. Of a batch, the file that was refused is named. */
function refused({ problem, files, count }: Item): string {
  if (typeof problem === 'string') return problem;
  const file = count > 1 && problem instanceof Problem && problem.item !== undefined ? files[problem.item] : undefined;
  return file ? `${spoken(file.name)}: ${detailOf(problem)}` : detailOf(problem);
}

function Acts({ item }: { item: Item }) {
  const { state } = item;
  const name = spoken(item.name);
  if (state === 'stored') return <span class="upload-done" role="img" aria-label="Stored"><Icon name="circle-check" size={18} /></span>;
  return (
    <div class="upload-acts">
      {item.canRetry && <IconButton name={`Try ${name} again`} icon="rotate-cw" onClick={() => resume(item)} />}
      {state === 'running' && <IconButton name={`Pause ${name}`} icon="pause" onClick={() => pause(item)} />}
      {state === 'paused' && <IconButton name={`Continue ${name}`} icon="play" onClick={() => resume(item)} />}
      <IconButton name={state === 'failed' ? `Dismiss ${name}` : `Cancel ${name}`} icon="x" onClick={() => cancel(item)} />
    </div>
  );
}

/** Cancels at once what has nothing at the server, and asks before bytes are thrown away. It pauses meanwhile. */
async function cancel(item: Item): Promise<void> {
  if (item.stored === 0) {
    await remove(item).catch((error: unknown) => sayError('Not cancelled', error));
    return;
  }
  const wasGoing = item.state === 'running' || item.state === 'waiting';
  pause(item);
  const isCancelled = await ask({
    title: 'Cancel this upload?',
    text: `The server removes the ${size(item.stored)} of ${spoken(item.name)} that it has.`,
    verb: 'Cancel the upload',
    danger: true,
    act: () => remove(item),
  });
  if (!isCancelled && wasGoing) resume(item);
}

/** An upload of an earlier visit, whose file must be chosen again. */
export function UnfinishedRow({ entry }: { entry: StoredUpload }) {
  const part = `${size(entry.stored)} of ${size(entry.size)} are safe, from ${when(entry.startedAt)}`;
  return (
    <li class="upload-row unfinished">
      <Sign name={entry.name} />
      <div class="upload-main">
        <p class="upload-name"><Name name={entry.name} /></p>
        <TwoToneBar label={entry.name} text={part} done={entry.stored} total={Math.max(entry.size, 1)} tone="ink" />
        <p class="upload-under">{part}</p>
      </div>
      <div class="upload-acts">
        <IconButton
          name={`Give up ${spoken(entry.name)}`}
          icon="x"
          onClick={() =>
            ask({
              title: 'Give up this upload?',
              text: `The server removes the ${size(entry.stored)} of ${spoken(entry.name)} that it has.`,
              verb: 'Give up',
              danger: true,
              act: () => giveUp(entry),
            })
          }
        />
      </div>
    </li>
  );
}
