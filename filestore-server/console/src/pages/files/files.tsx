// The files of an organization, newest first, as a grid or a list.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { offlineSince, type FileRecord } from '../../api/call';
import { current, letIn, openListing } from '../../data/current';
import type { Shape } from '../../data/layout';
import { filterKey, type Listing } from '../../data/listing';
import { organization, organizationName, subSystems, usage, usageError } from '../../data/place';
import { clearSelection, selection } from '../../data/selection';
import { Button, IconButton } from '../../parts/controls/button';
import { AddChip } from '../../parts/controls/chip';
import { copyText } from '../../parts/values/copy';
import { Empty } from '../../parts/notes/empty';
import { ErrorBox } from '../../parts/notes/error';
import { Icon } from '../../parts/icon';
import { openMenu, type MenuEntry } from '../../parts/controls/menu';
import { Segmented } from '../../parts/controls/segmented';
import { Size } from '../../parts/values/size';
import { say } from '../../parts/notes/toast';
import { go, href, route } from '../../router';
import { may } from '../../session';
import { Page } from '../../shell/page';
import { Switcher } from '../../shell/switcher';
import { usePhone } from '../../shell/width';
import { counted, roughCount } from '../../text/sizes';
import { dayName } from '../../text/times';
import { LinkDialog } from '../file/link';
import { StoreFirst } from '../start/first';
import { chooseFiles } from '../uploads/choose';
import { PhoneProgress } from '../uploads/dock';
import { SelectionBar } from './bar';
import { download, moveToTrash } from './actions';
import { atTop, Browser, ListHead, NewPill } from './browser';
import { GridCell, LIST_COLUMNS, ListRow, pathOf, PhoneRow } from './cells';
import { Chips, clearFilters, DateDialog, FilterDialog, filterOf, hasFilters, hasMore, setFilters } from './filters';
import { FindField } from './find';

const VIEW = 'filestore-view';
function keptView(): string {
  try {
    return localStorage.getItem(VIEW) ?? '';
  } catch {
    return '';
  }
}
function keepView(view: string): void {
  try {
    localStorage.setItem(VIEW, view);
  } catch {
    // The address has it as well.
  }
}

export function FilesPage() {
  const phone = usePhone();
  const org = organization.value ?? '';
  const { query } = route.value;
  const filter = filterOf(org, query);
  const key = filterKey(filter);
  const view = (query.get('view') ?? (keptView() || (phone ? 'list' : 'grid'))) === 'list' ? 'list' : 'grid';
  const [dialog, setDialog] = useState<'filter' | 'date' | null>(null);
  const [links, setLinks] = useState<FileRecord | null>(null);

  useEffect(() => {
    openListing(filterOf(org, route.peek().query));
  }, [key]);
  useEffect(() => letIn(atTop), []);
  useEffect(() => clearSelection, [key]);

  const listing = current.value;
  const mine = listing !== null && filterKey(listing.filter) === key;
  const isHere = mine && (listing.version.value > 0 || listing.error.value !== null);
  // What was there before stays, dimmed, until the first reply.
  const before = useRef<Listing | null>(null);
  if (isHere) before.current = listing;
  const shown = isHere || before.current === null || before.current.filter.organization !== org ? (mine ? listing : null) : before.current;

  const trash = useCallback(() => void moveToTrash([...selection.peek().values()]), []);
  const menu = useCallback((record: FileRecord, at: MouseEvent | HTMLElement) => {
    const chosen = selection.peek();
    const many = chosen.size > 1 && chosen.has(record.file_id);
    const records = many ? [...chosen.values()] : [record];
    const off = offlineSince.peek() !== null;
    const entries: MenuEntry[] = many
      ? [
          { label: `Move ${counted(records.length, 'file')} to the trash`, icon: 'trash-2', danger: true, disabled: off || !may('delete'), act: () => void moveToTrash(records) },
        ]
      : [
          { label: 'Open', icon: 'eye', hint: 'Enter', act: () => go(pathOf(record)) },
          { label: 'Download', icon: 'download', disabled: off, act: () => void download([record]) },
          { label: 'Link…', icon: 'link', disabled: off, act: () => setLinks(record) },
          { label: 'Copy id', icon: 'copy', act: () => void copyText(record.file_id).then((done) => done && say('Id copied')) },
          'line',
          { label: 'Move to trash', icon: 'trash-2', hint: 'Delete', danger: true, disabled: off || !may('delete'), act: () => void moveToTrash([record]) },
        ];
    openMenu(at as HTMLElement, 'File', entries);
  }, []);

  const isEmptyStore = usage.value !== null && usage.value.files === 0 && usage.value.deleted.files === 0 && !hasFilters(filter);
  if (mine && listing.complete.value && listing.count === 0 && isEmptyStore) return <StoreFirst organization={org} />;

  return (
    <Page title="Files" body={null}
      head={phone ? <PhoneHead view={view} onFilter={() => setDialog('filter')} /> : (
        <>
          <header class="page-head">
            <h1 class="page-title" tabIndex={-1}>Files</h1>
            <Total listing={mine ? listing : null} />
            <div class="page-actions">
              <FindField />
              {may('write') && <Button kind="primary" icon="upload" disabled={offlineSince.value !== null} onClick={() => chooseFiles()}>Upload</Button>}
            </div>
          </header>
          <div class="filter-bar">
            <SubSystems chosen={filter.sub_system ?? ''} />
            <span class="bar-divider" />
            <div class="filter-chips">
              <Chips filter={filter} onEdit={() => setDialog('filter')} />
              <AddChip icon="list-filter" onClick={() => setDialog('filter')}>Filter</AddChip>
              {!filter.created_before && <AddChip icon="calendar" onClick={() => setDialog('date')}>Go to date</AddChip>}
            </div>
            <span class="filter-order">Newest first</span>
            <span class="bar-divider" />
            <ViewSwitch view={view} />
          </div>
        </>
      )}>
      {shown && <Body listing={shown} dim={shown !== listing} view={view} phone={phone} onMenu={menu} onTrash={trash} />}
      <SelectionBar />
      {dialog === 'filter' && <FilterDialog filter={filter} onClose={() => setDialog(null)} />}
      {dialog === 'date' && <DateDialog onClose={() => setDialog(null)} />}
      {links && <LinkDialog records={[links]} onClose={() => setLinks(null)} />}
    </Page>
  );
}

function ViewSwitch({ view }: { view: 'grid' | 'list' }) {
  return (
    <Segmented label="View" value={view} size="small" onChange={(value) => {
      keepView(value);
      setFilters({ view: value }, true);
    }} segments={[
      { value: 'grid', label: <Icon name="layout-grid" />, name: 'Grid' },
      { value: 'list', label: <Icon name="rows-3" />, name: 'List' },
    ]} />
  );
}

/** How many files there are: of the organization or sub-system from its usage, of a filter when the end was reached. */
function Total({ listing }: { listing: Listing | null }) {
  if (listing) void listing.version.value;
  const filter = listing?.filter;
  if (!filter) return null;
  if (hasMore(filter)) {
    return <p class="page-under" aria-live="off">{listing.complete.value ? `${listing.isExact ? '' : 'about '}${counted(listing.count, 'file')}` : ''}</p>;
  }
  const part = filter.sub_system ? subSystems.value?.find((one) => one.sub_system === filter.sub_system) : usage.value;
  if (!part) return usageError.value !== null ? <p class="page-under" title="The usage could not be read">–</p> : null;
  const files = part.files - part.deleted.files;
  return <p class="page-under">{counted(files, 'file')}, <Size bytes={part.bytes - part.deleted.bytes} /></p>;
}

function SubSystems({ chosen }: { chosen: string }) {
  const all = subSystems.value ?? [];
  const live = all.map((one) => ({ name: one.sub_system, files: one.files - one.deleted.files })).filter((one) => one.files > 0 || one.name === chosen);
  if (live.length === 0) return null;
  const top = live.slice(0, 3);
  const extra = live.find((one) => one.name === chosen && !top.includes(one));
  const shown = extra ? [...top.slice(0, 2), extra] : top;
  const rest = live.filter((one) => !shown.includes(one));
  const choose = (name: string) => setFilters({ sub_system: name || null });
  return (
    <div class="sub-systems">
      <Segmented label="Sub-system" value={chosen} onChange={choose} segments={[
        { value: '', label: 'All' },
        ...shown.map((one) => ({ value: one.name, label: one.name, count: roughCount(one.files) })),
      ]} />
      {rest.length > 0 && (
        <IconButton name="More sub-systems" icon="ellipsis" popup="menu" size="small" onClick={(event) => openMenu(event.currentTarget as HTMLElement, 'Sub-systems',
          rest.map((one) => ({ label: one.name, hint: roughCount(one.files), act: () => choose(one.name) })))} />
      )}
    </div>
  );
}

function PhoneHead({ view, onFilter }: { view: 'grid' | 'list'; onFilter: () => void }) {
  const org = organization.value ?? '';
  const chosen = route.value.query.get('sub_system') ?? '';
  const live = (subSystems.value ?? []).filter((one) => one.files > one.deleted.files);
  const other = view === 'grid' ? 'list' : 'grid';
  const used = usage.value;
  return (
    <header class="phone-head">
      <div class="phone-top">
        <h1 class="unseen" tabIndex={-1}>Files of {organizationName(org)}</h1>
        <Switcher under={used ? <>{counted(used.files - used.deleted.files, 'file')}, <Size bytes={used.bytes - used.deleted.bytes} /></> : undefined} />
        <IconButton name={other === 'grid' ? 'Show as a grid' : 'Show as a list'} icon={other === 'grid' ? 'layout-grid' : 'rows-3'} onClick={() => {
          keepView(other);
          setFilters({ view: other }, true);
        }} />
      </div>
      <FindField />
      <div class="phone-chips">
        {[{ sub_system: '' }, ...live].map((one) => (
          <button key={one.sub_system} type="button" class={`pill-button ${one.sub_system === chosen ? 'chosen' : ''}`} aria-pressed={one.sub_system === chosen}
            onClick={() => setFilters({ sub_system: one.sub_system || null })}>{one.sub_system || 'All'}</button>
        ))}
        <button type="button" class="pill-button" aria-label="Filter" onClick={onFilter}><Icon name="list-filter" /></button>
      </div>
      <PhoneFilters onEdit={onFilter} />
      <PhoneProgress />
    </header>
  );
}

function PhoneFilters({ onEdit }: { onEdit: () => void }) {
  const filter = filterOf(organization.value ?? '', route.value.query);
  return hasMore({ ...filter, name_contains: undefined as never }) ? <div class="phone-chips"><Chips filter={filter} onEdit={onEdit} /></div> : null;
}

const GRID = (width: number): Shape => {
  const inner = width - 48;
  const columns = Math.max(2, Math.floor((inner + 20) / 170));
  const side = (inner - (columns - 1) * 16) / columns;
  return { columns, rowHeight: Math.round(side) + 62, headHeight: 45 };
};
const PHONE_GRID = (width: number): Shape => {
  const side = (width - 32 - 16) / 3;
  return { columns: 3, rowHeight: Math.round(side) + 52, headHeight: 38 };
};
const LIST = (): Shape => ({ columns: 1, rowHeight: 42, headHeight: 0 });
const PHONE_LIST = (): Shape => ({ columns: 1, rowHeight: 64, headHeight: 38 });

function Heading({ day }: { day: string }) {
  const noon = new Date(`${day}T12:00:00`);
  const near = dayName(noon);
  const isNear = near === 'Today' || near === 'Yesterday';
  const sameYear = noon.getFullYear() === new Date().getFullYear();
  const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'long' }).format(noon);
  const date = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', ...(sameYear ? {} : { year: 'numeric' }) }).format(noon);
  return <><strong>{isNear ? near : weekday}</strong> <span class="day-date">{isNear ? `${weekday} ` : ''}{date}</span></>;
}

function Body({ listing, dim, view, phone, onMenu, onTrash }: {
  listing: Listing;
  dim: boolean;
  view: 'grid' | 'list';
  phone: boolean;
  onMenu: (record: FileRecord, at: MouseEvent | HTMLElement) => void;
  onTrash: () => void;
}) {
  const error = listing.error.value;
  const shape = view === 'grid' ? (phone ? PHONE_GRID : GRID) : phone ? PHONE_LIST : LIST;
  if (listing.count === 0 && listing.complete.value) return <NoFiles listing={listing} />;
  if (listing.count === 0 && error !== null) return <div class="page-body"><ErrorBox error={error} onRetry={() => listing.retry()} what="Files" /></div>;
  return (
    <div class={`browser-place ${dim ? 'asked-again' : ''}`}>
      <NewPill listing={listing} />
      <Browser listing={listing} shape={shape} label="Files" kind={view} columns={view === 'grid' ? shape(1200).columns : LIST_COLUMNS.length}
        head={view === 'list' && !phone ? <ListHead listing={listing} words={LIST_COLUMNS} classes={['col-name', 'col-size', 'col-pixels', 'col-sub', 'col-state', 'col-added']} /> : undefined}
        heading={(day) => <Heading day={day} />}
        cell={(record, state) => view === 'grid'
          ? <GridCell record={record} state={state} onMenu={(at) => onMenu(record, at)} />
          : phone ? <PhoneRow record={record} state={state} onMenu={(at) => onMenu(record, at)} /> : <ListRow record={record} state={state} />}
        blank={view === 'grid' ? <><span class="block picture" /><span class="block word" /></> : <span class="block word" />}
        onOpen={(record) => go(pathOf(record))} onMenu={onMenu} onTrash={onTrash}
        padEnd={selection.value.size > 0 ? 72 : 16} />
    </div>
  );
}

function NoFiles({ listing }: { listing: Listing }) {
  const { filter } = listing;
  if (!hasFilters(filter)) {
    return (
      <Empty icon="images" title="No files here" action={may('write') ? <Button kind="primary" icon="upload" onClick={() => chooseFiles()}>Upload</Button> : undefined}>
        All files of this organization are in the <a class="link" href={href(`org/${filter.organization}/trash`)}>trash</a>, or there were none.
      </Empty>
    );
  }
  const words = filter.name_contains ? <>No name contains “{filter.name_contains}”</> : 'No file fits the filter';
  return <Empty icon="search" title={words} action={<Button onClick={() => clearFilters(filter)}>Clear the filter</Button>} />;
}
