// Deleted files with the time that is left to restore them.
import { useCallback, useEffect } from 'preact/hooks';
import { offlineSince, type FileRecord } from '../../api/call';
import { current, letIn, openListing } from '../../data/current';
import type { Shape } from '../../data/layout';
import { filterKey, type Filter } from '../../data/listing';
import { organization, usage } from '../../data/place';
import { clearSelection, selection } from '../../data/selection';
import { left } from '../../data/state';
import { Button } from '../../parts/controls/button';
import { copyText } from '../../parts/values/copy';
import { Empty } from '../../parts/notes/empty';
import { ErrorBox } from '../../parts/notes/error';
import { Icon } from '../../parts/icon';
import { openMenu } from '../../parts/controls/menu';
import { Name } from '../../parts/values/name';
import { Notice } from '../../parts/notes/notice';
import { Size } from '../../parts/values/size';
import { Time } from '../../parts/values/time';
import { say } from '../../parts/notes/toast';
import { go, href, route } from '../../router';
import { may, me } from '../../session';
import { Page } from '../../shell/page';
import { usePhone } from '../../shell/width';
import { counted } from '../../text/sizes';
import { duration, tick } from '../../text/times';
import { restore } from '../files/actions';
import { SelectionBar } from '../files/bar';
import { atTop, Browser, ListHead, NewPill, type CellState } from '../files/browser';
import { pathOf, Tick } from '../files/cells';
import { FindField } from '../files/find';
import { Thumb } from '../files/thumb';

const HOUR = 3_600_000;
const LIST = (): Shape => ({ columns: 1, rowHeight: 42, headHeight: 0 });
const PHONE = (): Shape => ({ columns: 1, rowHeight: 64, headHeight: 0 });
const COLUMNS = ['Name', 'Size', 'Sub-system', 'Deleted', 'Time left', ''];

export function TrashPage() {
  const org = organization.value ?? '';
  const phone = usePhone();
  const part = route.value.query.get('name_contains');
  const filter: Filter = { organization: org, metadata: [], deleted: true, ...(part ? { name_contains: part } : {}) };
  const key = filterKey(filter);
  useEffect(() => {
    openListing(filter);
  }, [key]);
  useEffect(() => letIn(atTop), []);
  useEffect(() => clearSelection, [key]);
  const listing = current.value;
  const mine = listing !== null && filterKey(listing.filter) === key ? listing : null;
  if (mine) void mine.version.value;
  const grace = me.value?.limits.purge_grace_secs ?? 0;
  const deleted = usage.value?.deleted;
  const menu = useCallback((record: FileRecord, at: MouseEvent | HTMLElement) => {
    openMenu(at as HTMLElement, 'File', [
      { label: 'Restore', icon: 'undo-2', disabled: offlineSince.peek() !== null || !may('write') || left(record.purge_due_at) === null, act: () => void restore([record]) },
      { label: 'Show', icon: 'eye', act: () => go(pathOf(record)) },
      { label: 'Copy id', icon: 'copy', act: () => void copyText(record.file_id).then((done) => done && say('Id copied')) },
    ]);
  }, []);
  const error = mine?.error.value ?? null;
  const empty = mine !== null && mine.complete.value && mine.count === 0;
  return (
    <Page title="Trash" body={null} under={deleted && <>{counted(deleted.files, 'file')}, <Size bytes={deleted.bytes} /></>} actions={<FindField />}>
      {(grace === 0 || !empty) && (
        <div class="trash-note">
          <Notice>
            {grace === 0 ? (
              <p>This server keeps no trash: <code>purge_grace_secs</code> is 0 in its configuration, so deleted files are removed at once.</p>
            ) : (
              <p>
                Deleted files can be restored for <strong>{duration(grace * 1000)}</strong>. Until then they count towards the quota. Afterwards their bytes are
                removed everywhere, and each file gets a signed receipt. Pictures of deleted files cannot be read, so only their placeholders are shown.
              </p>
            )}
          </Notice>
        </div>
      )}
      {empty && grace > 0 && (part ? (
        <Empty icon="search" title={<>No name in the trash contains “{part}”</>} action={<Button onClick={() => go(`org/${org}/trash`)}>Show all</Button>} />
      ) : (
        <Empty icon="trash-2" title="The trash is empty" action={<a class="button plain" href={href(`org/${org}/files`)}><span class="button-word">To the files</span></a>}>
          Deleted files stay here for {duration(grace * 1000)} and can be restored.
        </Empty>
      ))}
      {mine && mine.count === 0 && error !== null && <div class="page-body"><ErrorBox error={error} onRetry={() => mine.retry()} what="Trash" /></div>}
      {mine && !empty && !(mine.count === 0 && error !== null) && (
        <div class="browser-place trash">
          <NewPill listing={mine} />
          <Browser listing={mine} shape={phone ? PHONE : LIST} label="Deleted files" kind="list" columns={COLUMNS.length}
            head={phone ? undefined : <ListHead listing={mine} words={COLUMNS} classes={['col-name', 'col-size']} />} cell={(record, state) => (phone ? <PhoneRow record={record} state={state} /> : <Row record={record} state={state} />)}
            blank={<span class="block word" />} onOpen={(record) => go(pathOf(record))} onMenu={menu}
            padEnd={selection.value.size > 0 ? 72 : 16} />
        </div>
      )}
      <SelectionBar trash />
    </Page>
  );
}

function TimeLeft({ record }: { record: FileRecord }) {
  void tick.value;
  const ms = left(record.purge_due_at);
  const due = record.purge_due_at ? Date.parse(record.purge_due_at) : 0;
  const start = record.deleted_at ? Date.parse(record.deleted_at) : due;
  const whole = Math.max(1, due - start);
  const tone = ms === null ? 'gone' : ms < HOUR ? 'bad' : ms < 24 * HOUR && whole > 24 * HOUR ? 'warn' : '';
  return (
    <span class={`time-left ${tone}`}>
      <span class="time-left-bar" aria-hidden="true"><span style={{ transform: `scaleX(${ms === null ? 0 : Math.max(0.02, Math.min(1, ms / whole))})` }} /></span>
      <span class="number" title={record.purge_due_at ?? undefined}>{ms === null ? 'Being removed' : duration(ms)}</span>
    </span>
  );
}

function RestoreButton({ record }: { record: FileRecord }) {
  if (!may('write') || left(record.purge_due_at) === null) return null;
  return (
    <button type="button" class="row-act" tabIndex={-1} disabled={offlineSince.value !== null} onClick={(event) => {
      event.stopPropagation();
      void restore([record]);
    }}><Icon name="undo-2" size={14} />Restore</button>
  );
}

function Row({ record, state }: { record: FileRecord; state: CellState }) {
  return (
    <>
      <span role="gridcell" class="col-name">
        <Tick state={state} />
        <Thumb record={record} small still />
        <a href={href(pathOf(record))} tabIndex={-1} class="row-name"><Name name={record.original_name} /></a>
      </span>
      <span role="gridcell" class="col-size"><Size bytes={record.file_size} /></span>
      <span role="gridcell">{record.sub_system}</span>
      <span role="gridcell">{record.deleted_at ? <Time at={record.deleted_at} absolute /> : '–'}</span>
      <span role="gridcell"><TimeLeft record={record} /></span>
      <span role="gridcell" class="col-act"><RestoreButton record={record} /></span>
    </>
  );
}

function PhoneRow({ record, state }: { record: FileRecord; state: CellState }) {
  return (
    <>
      <span role="gridcell" class="phone-thumb"><Thumb record={record} small still />{state.selected && <Tick state={state} />}</span>
      <span role="gridcell" class="phone-text">
        <a href={href(pathOf(record))} tabIndex={-1} class="row-name"><Name name={record.original_name} /></a>
        <span class="cell-under"><TimeLeft record={record} /></span>
      </span>
      <span role="gridcell" class="phone-more"><RestoreButton record={record} /></span>
    </>
  );
}
