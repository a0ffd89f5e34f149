// What can be done with the selected files, and how far it is.
import { useState } from 'preact/hooks';
import { bulk, refusals } from '../../data/bulk';
import { clearSelection, selectedBytes, selection } from '../../data/selection';
import { TwoToneBar } from '../../parts/bar';
import { Button } from '../../parts/controls/button';
import { Dialog } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Name } from '../../parts/values/name';
import { Size } from '../../parts/values/size';
import { offlineSince } from '../../api/call';
import { may } from '../../session';
import { count, counted } from '../../text/sizes';
import { LinkDialog } from '../file/link';
import { download, MOST_DOWNLOADS, moveToTrash, restore } from './actions';

function Act({ icon, word, onClick, disabled, title }: { icon: Parameters<typeof Icon>[0]['name']; word: string; onClick: () => void; disabled?: boolean; title?: string }) {
  return (
    <button type="button" class="bar-act" onClick={onClick} disabled={disabled} title={title} aria-label={word}>
      <Icon name={icon} /><span>{word}</span>
    </button>
  );
}

export function SelectionBar({ trash }: { trash?: boolean }) {
  const [links, setLinks] = useState(false);
  const run = bulk.value;
  const chosen = selection.value;
  const records = [...chosen.values()];
  const off = offlineSince.value !== null;
  if (run) {
    const words = run.verb === 'trash' ? 'Moving to the trash' : 'Restoring';
    const text = `${count(run.done)} of ${counted(run.total, 'file')}`;
    return (
      <div class="selection-bar" role="region" aria-label={words}>
        <span class="bar-count">{words}</span>
        <span class="bar-progress"><TwoToneBar label={words} text={text} done={run.done} total={run.total} /></span>
        <span class="bar-bytes number">{text}</span>
        {run.total > 1000 && <Act icon="x" word="Stop" onClick={run.stop} />}
      </div>
    );
  }
  return (
    <>
      {chosen.size > 0 && (
        <div class="selection-bar" role="region" aria-label="Selected files">
          <span class="bar-count">{count(chosen.size)} selected</span>
          <span class="bar-bytes"><Size bytes={selectedBytes.value} /></span>
          <span class="bar-line" />
          {trash ? (
            may('write') && <Act icon="undo-2" word="Restore" disabled={off} onClick={() => void restore(records)} />
          ) : (
            <>
              <Act icon="download" word="Download" disabled={off || chosen.size > MOST_DOWNLOADS} onClick={() => void download(records)}
                {...(chosen.size > MOST_DOWNLOADS ? { title: `At most ${MOST_DOWNLOADS} files at once. For more, use: filestore download` } : {})} />
              <Act icon="link" word="Copy links" disabled={off || chosen.size > 100} onClick={() => setLinks(true)}
                {...(chosen.size > 100 ? { title: 'At most 100 links at once' } : {})} />
              {may('delete') && <Act icon="trash-2" word="Move to trash" disabled={off} onClick={() => void moveToTrash(records)} />}
            </>
          )}
          <span class="bar-line" />
          <button type="button" class="bar-act close" aria-label="Clear the selection" onClick={clearSelection}><Icon name="x" /></button>
        </div>
      )}
      {links && <LinkDialog records={records} onClose={() => setLinks(false)} />}
    </>
  );
}

/** The files with which it did not work, each with its reason. They stay selected. */
export function Refused() {
  const list = refusals.value;
  if (list.length === 0) return null;
  const close = () => (refusals.value = []);
  return (
    <Dialog title={`Not done with ${counted(list.length, 'file')}`} onClose={close} actions={<Button kind="primary" onClick={close}>Close</Button>}>
      <ul class="refusals">
        {list.slice(0, 100).map(({ record, detail }) => (
          <li key={record.file_id}><Name name={record.original_name} /><span class="quiet-text">{detail}</span></li>
        ))}
      </ul>
      {list.length > 100 && <p class="quiet-text">and {count(list.length - 100)} more</p>}
    </Dialog>
  );
}
