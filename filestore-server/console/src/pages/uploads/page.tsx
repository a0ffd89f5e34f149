// All uploads of this tab, and those that an earlier visit has not finished.
import { useState } from 'preact/hooks';
import { Button } from '../../parts/controls/button';
import { Empty } from '../../parts/notes/empty';
import { Page } from '../../shell/page';
import { may } from '../../session';
import { counted } from '../../text/sizes';
import { all, clear, retryFailed, totals } from '../../upload/queue';
import { unfinished } from '../../upload/unfinished';
import { chooseFiles } from './choose';
import { AllActs, heading, Legend, sorted, Sums } from './dock';
import { UnfinishedRow, UploadRow } from './row';

const STEP = 100;

export function UploadsPage() {
  const sums = totals.value;
  const [rows, setRows] = useState(STEP);
  const items = sorted(rows);
  const rest = all().length - items.length;
  const left = unfinished.value;
  const isDone = sums.active + sums.paused === 0;
  return (
    <Page
      title="Uploads"
      under={items.length > 0 ? heading(sums) : undefined}
      actions={
        <>
          <AllActs sums={sums} />
          {sums.failed > 0 && <Button icon="rotate-cw" onClick={retryFailed}>Try failed again</Button>}
          {isDone && items.length > 0 && <Button onClick={() => clear(true)}>Clear</Button>}
          {may('write') && <Button icon="folder-up" onClick={() => chooseFiles({ folder: true, ask: true })}>Folder</Button>}
          {may('write') && <Button kind="primary" icon="upload" onClick={() => chooseFiles({ ask: true })}>Upload</Button>}
        </>
      }
    >
      <div class="uploads-page">
        {items.length > 0 && (
          <section class="uploads-box" aria-label="Uploads">
            {!isDone && <div class="dock-all"><Sums sums={sums} /></div>}
            <ul aria-label="Files">{items.map((item) => <UploadRow key={item.id} item={item} />)}</ul>
            {rest > 0 && <Button onClick={() => setRows(rows + STEP)}>Show more of {counted(rest, 'file')}</Button>}
            <Legend failed={sums.failed} />
          </section>
        )}
        {left.length > 0 && (
          <section class="uploads-box" aria-labelledby="unfinished-title">
            <h2 id="unfinished-title">Not finished</h2>
            <p class="dock-text">Drop or choose the same files again, and they go on where they were.</p>
            <ul aria-label="Unfinished files">{left.map((entry) => <UnfinishedRow key={entry.fingerprint} entry={entry} />)}</ul>
          </section>
        )}
        {items.length === 0 && left.length === 0 && (
          <Empty icon="upload" title="Nothing is being uploaded">Drop files or folders anywhere in the console.</Empty>
        )}
      </div>
    </Page>
  );
}
