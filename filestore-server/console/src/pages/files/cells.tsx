// How one file looks in the grid, in the list, and on a phone.
import type { FileRecord } from '../../api/call';
import { stateOf } from '../../data/state';
import { Icon } from '../../parts/icon';
import { Name } from '../../parts/values/name';
import { Size } from '../../parts/values/size';
import { State, StateMark } from '../../parts/notes/state';
import { Time } from '../../parts/values/time';
import { href } from '../../router';
import { tick } from '../../text/times';
import type { CellState } from './browser';
import { Thumb } from './thumb';

export const pathOf = (record: FileRecord): string => `org/${record.organization_id}/files/${record.file_id}`;
export const pixels = (record: FileRecord): string | null => (record.width && record.height ? `${record.width} × ${record.height}` : null);

/** What a file is, if it has no pixels. */
function kindOf(record: FileRecord): string {
  const kind = record.mime_type.split('/')[0];
  return kind === 'video' || kind === 'audio' ? kind : record.sub_system;
}

/** Not a control of its own for the keyboard: Space selects the row or cell. */
export function Tick({ state }: { state: CellState }) {
  return (
    <span
      class={`tick ${state.selected ? 'on' : ''}`}
      onClick={(event) => {
        event.preventDefault();
        event.stopPropagation();
        state.toggle(event);
      }}
      aria-hidden="true"
    >
      {state.selected && <Icon name="check" size={14} />}
    </span>
  );
}

function Mark({ record }: { record: FileRecord }) {
  if (record.status === 'TEMP') void tick.value;
  const told = stateOf(record);
  if (!told.notable) return null;
  return (
    <span class={`thumb-mark ${told.kind}`}>
      <Icon name={record.status === 'TEMP' ? 'clock' : told.kind === 'bad' ? 'triangle-alert' : 'cloud-upload'} size={12} />
      {record.status === 'TEMP' ? `${told.words} left` : told.words}
    </span>
  );
}

export function GridCell({ record, state, onMenu }: { record: FileRecord; state: CellState; onMenu: (at: HTMLElement) => void }) {
  return (
    <>
      <span class="cell-picture">
        <Thumb record={record} />
        <Tick state={state} />
        <span class="cell-more" onClick={(event) => {
          event.stopPropagation();
          onMenu(event.currentTarget);
        }} aria-hidden="true"><Icon name="ellipsis" /></span>
        <Mark record={record} />
      </span>
      <a class="cell-name" href={href(pathOf(record))} tabIndex={-1}><Name name={record.original_name} /></a>
      <span class="cell-under">
        <Size bytes={record.file_size} /><span class="sep"> · </span>{pixels(record) ?? kindOf(record)}
      </span>
    </>
  );
}

export const LIST_COLUMNS = ['Name', 'Size', 'Pixels', 'Sub-system', 'State', 'Added'];

export function ListRow({ record, state }: { record: FileRecord; state: CellState }) {
  if (record.status === 'TEMP') void tick.value;
  const told = stateOf(record);
  return (
    <>
      <span role="gridcell" class="col-name">
        <Tick state={state} />
        <Thumb record={record} small />
        <a href={href(pathOf(record))} tabIndex={-1} class="row-name"><Name name={record.original_name} /></a>
      </span>
      <span role="gridcell" class="col-size"><Size bytes={record.file_size} /></span>
      <span role="gridcell" class="col-pixels number">{pixels(record) ?? '–'}</span>
      <span role="gridcell" class="col-sub">{record.sub_system}</span>
      <span role="gridcell" class="col-state"><State kind={told.kind}>{told.words}</State></span>
      <span role="gridcell" class="col-added number"><Time at={record.created_at} /></span>
    </>
  );
}

export function PhoneRow({ record, state, onMenu }: { record: FileRecord; state: CellState; onMenu: (at: HTMLElement) => void }) {
  if (record.status === 'TEMP') void tick.value;
  const told = stateOf(record);
  return (
    <>
      <span role="gridcell" class="phone-thumb"><Thumb record={record} small />{state.selected && <Tick state={state} />}</span>
      <span role="gridcell" class="phone-text">
        <a href={href(pathOf(record))} tabIndex={-1} class="row-name"><Name name={record.original_name} /></a>
        <span class="cell-under">
          {told.notable && <><StateMark kind={told.kind} />{told.words.split(',')[0]} · </>}
          <Size bytes={record.file_size} /> · {pixels(record) ?? kindOf(record)}
        </span>
      </span>
      <span role="gridcell" class="phone-more">
        <button type="button" class="icon-button quiet" aria-label="Actions" onClick={(event) => {
          event.stopPropagation();
          onMenu(event.currentTarget);
        }}><Icon name="ellipsis-vertical" size={18} /></button>
      </span>
    </>
  );
}
