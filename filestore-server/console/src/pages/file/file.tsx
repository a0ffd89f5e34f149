// One file: its picture, its variants, its record, where its bytes are, and what happened to it.
import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { call, isAbort, offlineSince, Problem, type Explanation, type FileRecord } from '../../api/call';
import { current, noteRecord } from '../../data/current';
import { onEvent } from '../../data/events';
import { organization, organizationName } from '../../data/place';
import { hasPicture } from '../../data/sheets';
import { left, stateOf } from '../../data/state';
import { Button, IconButton } from '../../parts/controls/button';
import { CopyIcon, Id } from '../../parts/values/copy';
import { Empty } from '../../parts/notes/empty';
import { ErrorBox } from '../../parts/notes/error';
import { Icon } from '../../parts/icon';
import { openMenu } from '../../parts/controls/menu';
import { Name } from '../../parts/values/name';
import { Banner } from '../../parts/notes/notice';
import { Pairs } from '../../parts/pairs';
import { Size } from '../../parts/values/size';
import { State } from '../../parts/notes/state';
import { Time } from '../../parts/values/time';
import { say, sayError } from '../../parts/notes/toast';
import { go, href, route } from '../../router';
import { may } from '../../session';
import { Page } from '../../shell/page';
import { usePhone } from '../../shell/width';
import { letters } from '../../shell/keys';
import { shortId, spoken } from '../../text/names';
import { count } from '../../text/sizes';
import { duration, tick } from '../../text/times';
import { download, moveToTrash, restore } from '../files/actions';
import { pixels } from '../files/cells';
import { EditDialog, MetadataDialog } from './edit';
import { History } from './history';
import { LinkDialog } from './link';
import { openInTab, Preview } from './preview';
import { ReplaceDialog } from './replace';
import { Variants } from './variants';
import { Where } from './where';

type Asked = { what: 'link' } | { what: 'edit' } | { what: 'metadata' } | { what: 'replace'; file: File };

export function FilePage() {
  const id = route.value.params['id'] ?? '';
  const org = organization.value ?? '';
  const [record, setRecord] = useState<FileRecord | null>(() => known(id));
  const [error, setError] = useState<unknown>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const phone = usePhone();
  const shown = record?.file_id === id ? record : known(id);

  const load = useCallback(async (signal?: AbortSignal) => {
    try {
      const { data } = await call('GET', '/files/{file_id}/info', { path: { file_id: id }, ...(signal ? { signal } : {}) });
      setRecord(data);
      setError(null);
      if (data.purge_status === null) noteRecord(data);
      if (data.organization_id !== org) go(`org/${data.organization_id}/files/${id}`, { replace: true });
    } catch (problem) {
      if (!isAbort(problem)) setError(problem);
    }
  }, [id]);

  useEffect(() => {
    const end = new AbortController();
    setError(null);
    void load(end.signal);
    const stop = onEvent((event) => event.data.file_id === id && void load(end.signal));
    return () => {
      stop();
      end.abort(new DOMException('another file is shown', 'AbortError'));
    };
  }, [load]);

  const live = shown !== null && shown.purge_status === null;
  const off = offlineSince.value !== null;
  const trash = useCallback(async () => {
    const target = known(id) ?? record;
    if (!target || target.purge_status !== null || !may('delete')) return;
    const next = beside(id, 1) ?? beside(id, -1);
    if (await moveToTrash([target])) go(next ? `org/${org}/files/${next}` : back(), { replace: true });
  }, [id, org, record]);

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      if (document.querySelector('dialog[open], [role="menu"]')) return;
      if (event.target instanceof HTMLElement && event.target.closest('input, textarea, select, video, audio, pre, [role="radiogroup"]')) return;
      const way = { ']': 1, ArrowRight: 1, ArrowDown: 0, '[': -1, ArrowLeft: -1 }[event.key];
      if (way && (letters.peek() || event.key.startsWith('Arrow'))) {
        const next = beside(id, way);
        if (next) go(`org/${org}/files/${next}`, { replace: true });
        event.preventDefault();
      } else if (event.key === 'Delete') void trash();
      else if (event.key === 'Escape') go(back());
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [id, org, trash]);

  if (shown === null) {
    if (error === null) return <Page title="File" head={<Head><span /></Head>} />;
    return <Gone id={id} error={error} onRetry={() => load()} />;
  }

  const pick = () => chooser.current?.click();
  const done = (next: FileRecord) => (setRecord(next), noteRecord(next));
  const menu = (at: HTMLElement) => openMenu(at, 'File', [
    { label: 'Open in a new tab', icon: 'external-link', disabled: off || !live, act: () => void openInTab(shown) },
    { label: 'Name and type…', icon: 'pencil', disabled: off || !live || !may('write'), act: () => setAsked({ what: 'edit' }) },
    { label: 'Metadata…', icon: 'tag', disabled: off || !live || !may('write'), act: () => setAsked({ what: 'metadata' }) },
    ...(phone ? [] : [{ label: 'Replace…', icon: 'replace' as const, disabled: off || !live || !may('write'), act: pick }]),
    'line' as const,
    { label: 'Move to trash', icon: 'trash-2', danger: true, disabled: off || !live || !may('delete'), act: () => void trash() },
  ]);
  const walk = <Walk id={id} org={org} />;
  return (
    <Page title={shown.original_name ? spoken(shown.original_name) : id} trail={['Files', organizationName(org)]} body={null} class="file-page"
      head={phone ? (
        <header class="page-head file-head">
          <a class="icon-button quiet" href={back()} aria-label="Back to the files"><Icon name="arrow-left" size={20} /></a>
          <div class="file-phone-title">
            <h1 class="page-title" tabIndex={-1}><Name name={shown.original_name} /></h1>
            <p class="quiet-text"><Size bytes={shown.file_size} />{pixels(shown) && `, ${pixels(shown)}`}</p>
          </div>
          <IconButton name="Actions" icon="ellipsis-vertical" popup="menu" onClick={(event) => menu(event.currentTarget as HTMLElement)} />
        </header>
      ) : (
        <Head>
          <nav class="crumbs" aria-label="Place">
            <a href={back()}>Files</a><span aria-hidden="true">/</span>
            <a href={href(`org/${org}/files`, { sub_system: shown.sub_system })}>{shown.sub_system}</a><span aria-hidden="true">/</span>
            <h1 class="page-title" tabIndex={-1}><Name name={shown.original_name} /></h1>
          </nav>
          <div class="page-actions">
            {walk}
            {live && (
              <>
                <Button icon="link" disabled={off} onClick={() => setAsked({ what: 'link' })}>Copy link</Button>
                {may('write') && <Button icon="replace" disabled={off} onClick={pick}>Replace</Button>}
                {may('delete') && <IconButton kind="plain" name="Move to trash" icon="trash-2" disabled={off} onClick={() => trash()} />}
                <Button kind="primary" icon="download" disabled={off} onClick={() => download([shown])}>Download</Button>
              </>
            )}
          </div>
        </Head>
      )}>
      <Bars record={shown} off={off} onDone={done} reload={() => load()} />
      {error !== null && <div class="file-error"><ErrorBox error={error} onRetry={() => load()} what="The newest record" /></div>}
      <div class="file-body">
        <div class="file-main">
          <div class="file-preview" data-drop
            onDragOver={(event) => {
              if (!live || !may('write') || !event.dataTransfer?.types.includes('Files')) return;
              event.preventDefault();
              event.stopPropagation();
              event.currentTarget.classList.add('target');
            }}
            onDragLeave={(event) => event.currentTarget.classList.remove('target')}
            onDrop={(event) => {
              event.currentTarget.classList.remove('target');
              const file = event.dataTransfer?.files[0];
              if (!live || !may('write') || !file) return;
              event.preventDefault();
              event.stopPropagation();
              setAsked({ what: 'replace', file });
            }}>
            <Preview key={shown.file_id} record={shown} />
          </div>
          {phone && <States record={shown} />}
          {live && hasPicture(shown) && <Variants record={shown} />}
        </div>
        <aside class="file-side" aria-label="About the file">
          {!phone && (
            <section class="aside-part">
              <div class="file-title">
                <h2><Name name={shown.original_name} whole /></h2>
                {live && may('write') && <IconButton name="Change name and type" icon="pencil" disabled={off} onClick={() => setAsked({ what: 'edit' })} />}
              </div>
              <p class="file-facts"><Size bytes={shown.file_size} />{pixels(shown) && `, ${pixels(shown)}`}, {shown.mime_type}</p>
              <States record={shown} />
            </section>
          )}
          <section class="aside-part" aria-label="Record">
            <Pairs rows={[
              ['Id', <Id key="id" value={shown.file_id} full />],
              ['SHA-256', <Id key="sha" value={shown.sha256} what="SHA-256" />],
              ['Added', <Time key="added" at={shown.created_at} absolute />],
              ['Changed', shown.updated_at !== shown.created_at && <Time key="changed" at={shown.updated_at} absolute />],
              ['Path', <span key="path" class="id"><code title={shown.file_path}>{shortId(shown.file_path, 16, 6)}</code><CopyIcon text={shown.file_path} what="path" /></span>],
            ].map(([label, value]) => (value ? ([label, value] as const) : false))} />
          </section>
          <section class="aside-part" aria-labelledby="where">
            <header class="aside-head"><h2 id="where">Where the bytes are</h2></header>
            <Where record={shown} />
          </section>
          <section class="aside-part" aria-labelledby="metadata">
            <header class="aside-head">
              <h2 id="metadata">Metadata</h2>
              {live && may('write') && <button type="button" class="aside-link" disabled={off} onClick={() => setAsked({ what: 'metadata' })}>Edit</button>}
            </header>
            <Metadata value={shown.metadata} />
          </section>
          <section class="aside-part" aria-labelledby="history">
            <header class="aside-head"><h2 id="history">History</h2></header>
            <History record={shown} />
          </section>
        </aside>
      </div>
      {phone && live && (
        <div class="file-acts">
          <PhoneAct icon="download" word="Download" onClick={() => void download([shown])} />
          <PhoneAct icon="link" word="Copy link" onClick={() => setAsked({ what: 'link' })} />
          {may('write') && <PhoneAct icon="replace" word="Replace" onClick={pick} />}
          {may('delete') && <PhoneAct icon="trash-2" word="Trash" danger onClick={() => void trash()} />}
        </div>
      )}
      <input ref={chooser} type="file" hidden tabIndex={-1} aria-label="New bytes" onChange={(event) => {
        const file = event.currentTarget.files?.[0];
        event.currentTarget.value = '';
        if (file) setAsked({ what: 'replace', file });
      }} />
      {asked?.what === 'link' && <LinkDialog records={[shown]} onClose={() => setAsked(null)} />}
      {asked?.what === 'edit' && <EditDialog record={shown} onClose={() => setAsked(null)} onDone={done} />}
      {asked?.what === 'metadata' && <MetadataDialog record={shown} onClose={() => setAsked(null)} onDone={done} />}
      {asked?.what === 'replace' && <ReplaceDialog record={shown} file={asked.file} onClose={() => setAsked(null)} onDone={done} />}
    </Page>
  );
}

function Head({ children }: { children: ComponentChildren }) {
  return (
    <header class="page-head file-head">
      <a class="icon-button quiet" href={back()} aria-label="Back to the files"><Icon name="arrow-left" /></a>
      {children}
    </header>
  );
}

function PhoneAct({ icon, word, danger, onClick }: { icon: Parameters<typeof Icon>[0]['name']; word: string; danger?: boolean; onClick: () => void }) {
  return <button type="button" class={`tab ${danger ? 'danger' : ''}`} disabled={offlineSince.value !== null} onClick={onClick}><Icon name={icon} size={20} />{word}</button>;
}

/** The record as the listing has it, so that the page is there at once. */
function known(id: string): FileRecord | null {
  const listing = current.peek();
  const at = listing?.indexOf(id) ?? -1;
  return at < 0 ? null : (listing?.at(at) ?? null);
}

/** The id before or after in the listing that was shown last. */
function beside(id: string, way: number): string | null {
  const listing = current.peek();
  const at = listing?.indexOf(id) ?? -1;
  if (!listing || at < 0) return null;
  listing.need(Math.max(0, at - 2), at + 3);
  return listing.at(at + way)?.file_id ?? null;
}

/** The way back: the listing with its filters. */
function back(): string {
  const org = route.peek().params['org'] ?? '';
  const filter = current.peek()?.filter;
  if (filter?.deleted && filter.organization === org) return href(`org/${org}/trash`);
  const query = new URLSearchParams();
  if (filter && filter.organization === org) {
    const { organization: _, metadata, deleted: __, ...plain } = filter;
    for (const [name, value] of Object.entries(plain)) if (value) query.set(name, value);
    for (const [key, value] of metadata) query.set(`metadata.${key}`, value);
  }
  const text = query.toString();
  return text ? `${href(`org/${org}/files`)}?${text}` : href(`org/${org}/files`);
}

function Walk({ id, org }: { id: string; org: string }) {
  const listing = current.value;
  if (listing) void listing.version.value;
  const at = listing?.indexOf(id) ?? -1;
  if (!listing || at < 0) return null;
  const step = (way: number) => {
    const next = beside(id, way);
    if (next) go(`org/${org}/files/${next}`, { replace: true });
  };
  return (
    <div class="walk">
      <span class="quiet-text number">{count(at + 1)} of {count(listing.count)}{listing.complete.value ? '' : ' loaded'}</span>
      <IconButton name="Previous file" icon="chevron-up" disabled={at === 0} onClick={() => step(-1)} />
      <IconButton name="Next file" icon="chevron-down" disabled={at >= listing.count - 1} onClick={() => step(1)} />
      <span class="bar-divider" />
    </div>
  );
}

function States({ record }: { record: FileRecord }) {
  if (record.status === 'TEMP' || record.purge_due_at) void tick.value;
  const told = stateOf(record);
  return (
    <p class="file-states">
      {record.purge_status !== null ? <State kind="warn">In the trash</State> : (
        <>
          {record.status === 'READY' && <State kind="ok">Ready</State>}
          {(record.status !== 'READY' || told.words !== 'Stored') && <State kind={told.kind}>{told.words}</State>}
        </>
      )}
      <span class="file-version"><Icon name="history" size={14} />Version {record.version}</span>
    </p>
  );
}

function Metadata({ value }: { value: Record<string, unknown> }) {
  const entries = Object.entries(value);
  if (entries.length === 0) return <p class="quiet-text">None. Your application can keep facts with a file.</p>;
  return <Pairs rows={entries.map(([key, one]) => [<bdi key="k" class="metadata-key" title={key}>{key}</bdi>, typeof one === 'string' ? <Name key="v" name={one} whole /> : <code key="v">{JSON.stringify(one)}</code>] as const)} />;
}

/** What is unusual about the file, and the way out. */
function Bars({ record, off, onDone, reload }: { record: FileRecord; off: boolean; onDone: (record: FileRecord) => void; reload: () => Promise<void> }) {
  if (record.purge_status !== null) {
    void tick.value;
    const ms = left(record.purge_due_at);
    return (
      <Banner kind="warn" icon="trash-2" action={ms !== null && may('write') ? <Button size="small" icon="undo-2" disabled={off} onClick={async () => {
        await restore([record]);
        await reload();
      }}>Restore</Button> : undefined}>
        {ms === null ? 'In the trash, being removed.' : `In the trash. It is removed in ${duration(ms)}.`}
      </Banner>
    );
  }
  if (record.status === 'TEMP') {
    void tick.value;
    const ms = left(record.expires_at);
    const keep = async () => {
      const form = new FormData();
      form.set('file_id', record.file_id);
      form.set('make_as_ready', 'true');
      try {
        await call('PUT', '/files/upload', { body: form as never, headers: { 'If-Match': `"${record.sha256}"` } });
        onDone((await call('GET', '/files/{file_id}/info', { path: { file_id: record.file_id } })).data);
        say('Kept for good');
      } catch (error) {
        sayError('Not kept', error);
      }
    };
    return (
      <Banner kind="warn" icon="clock" action={may('write') ? <Button size="small" disabled={off} onClick={keep}>Keep it</Button> : undefined}>
        {ms === null ? 'Temporary, and expiring now.' : `Temporary. It expires in ${duration(ms)}, unless it is kept.`}
      </Banner>
    );
  }
  return null;
}

/** The file is not there: purged, of another organization, or never. */
function Gone({ id, error, onRetry }: { id: string; error: unknown; onRetry: () => Promise<void> }) {
  const [told, setTold] = useState<Explanation | null>(null);
  const missing = error instanceof Problem && error.status === 404;
  useEffect(() => {
    if (!missing) return;
    call('GET', '/files/{file_id}/explain', { path: { file_id: id } }).then(({ data }) => setTold(data), () => setTold(null));
  }, [id, missing]);
  return (
    <Page title="File" head={<Head><h1 class="page-title" tabIndex={-1}>File</h1></Head>}>
      {!missing ? <ErrorBox error={error} onRetry={onRetry} /> : told?.purged_at ? (
        <Empty icon="trash-2" title="This file was removed for good" action={<a class="button plain" href={back()}><span class="button-word">Back to the files</span></a>}>
          Its bytes and its record are gone since <Time at={told.purged_at} absolute />. {told.next[0]?.then[0]?.until && 'A signed receipt proves it.'}
        </Empty>
      ) : (
        <Empty icon="search" title="Not there, or not yours" action={<a class="button plain" href={href(`org/${organization.value ?? ''}/files`)}><span class="button-word">To the files</span></a>}>
          No file that this key may see has the id <code>{id}</code>.
        </Empty>
      )}
    </Page>
  );
}
