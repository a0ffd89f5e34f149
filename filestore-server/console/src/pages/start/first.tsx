// The first file: two words, a drop zone, and the same from a terminal.
import { useState } from 'preact/hooks';
import { apiRoot, call } from '../../api/call';
import { onEvent } from '../../data/events';
import { useEffect } from 'preact/hooks';
import { CopyIcon } from '../../parts/values/copy';
import { TextField } from '../../parts/controls/field';
import { Icon } from '../../parts/icon';
import { go } from '../../router';
import { may, me } from '../../session';
import { Page } from '../../shell/page';
import { size } from '../../text/sizes';
import { totals } from '../../upload/queue';
import { chooseFiles, uploadTarget } from '../uploads/choose';

const ORGANIZATION = /^[A-Za-z0-9_-]{1,64}$/;
const SUB_SYSTEM = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function StoreFirst({ organization }: { organization: string | null }) {
  const [org, setOrg] = useState(organization ?? '42');
  const [sub, setSub] = useState('gallery');
  const orgWrong = !ORGANIZATION.test(org) ? 'Letters, digits, _ and -, at most 64.' : undefined;
  const subWrong = !SUB_SYSTEM.test(sub) ? 'Letters, digits, . _ and -, at most 64.' : undefined;
  const ready = !orgWrong && !subWrong;
  useEffect(() => {
    uploadTarget.value = ready ? { organization: org, subSystem: sub } : null;
    return () => (uploadTarget.value = null);
  }, [org, sub, ready]);
  // The first stored file opens, however it came. Of many, the list opens.
  const show = (id: string, file: string) => go(`org/${id}/files${totals.peek().files > 1 ? '' : `/${file}`}`);
  useEffect(() => onEvent((event) => {
    const { organization_id, file_id } = event.data;
    if (event.type === 'file.uploaded' && organization_id && file_id) show(organization_id, file_id);
  }), []);
  // Before an organization is in the address, no stream is open for it.
  useEffect(() => {
    if (organization !== null || !ready) return;
    const timer = setInterval(() => {
      void call('GET', '/files', { query: { organization_id: org, limit: 1 } }).then(({ data }) => {
        const first = data.items[0];
        if (first) show(org, first.file_id);
      }, () => undefined);
    }, 3000);
    return () => clearInterval(timer);
  }, [organization, org, ready]);
  const most = me.value?.limits.max_resumable_size ?? me.value?.limits.max_file_size;
  const key = me.value?.key ? `-H "Authorization: Bearer $KEY" ` : '';
  const url = new URL('files/upload', apiRoot).href;
  return (
    <Page title="Store the first file" head={<></>}>
      <div class="first">
        <h1 class="headline" tabIndex={-1}>Store the first file</h1>
        <p class="first-lead">
          An upload needs two words of your choice: an organization, whose files nobody else sees, and a sub-system, the part of your
          application that the files belong to. Neither has to be made before.
        </p>
        <ol class="steps">
          <li class="step now">
            <h2>Name them</h2>
            <div class="first-fields">
              <TextField label="Organization" value={org} onInput={setOrg} mono disabled={organization !== null} error={orgWrong} autoComplete="off" />
              <TextField label="Sub-system" value={sub} onInput={setSub} mono error={subWrong} autoComplete="off" />
              <p class="field-hint">A number can be bound to a storage provider later. Letters, digits, _ and - work too.</p>
            </div>
          </li>
          <li class="step">
            <h2>Drop files, or send them from a terminal</h2>
            {may('write') && (
              <div class="drop-zone">
                <Icon name="upload" size={22} />
                <p class="drop-title">Drop files or a folder anywhere on this page</p>
                <p>
                  or <button type="button" class="link" disabled={!ready} onClick={() => chooseFiles()}>choose files</button>.
                  {most !== undefined && ` Up to ${size(most)} each.`} Uploads go on after a lost connection.
                </p>
              </div>
            )}
            <div class="command curl">
              <pre tabIndex={0} aria-label="The same with curl"><code>
                <span class="sh-dim">$ </span>curl {key}<span class="sh-arg">-F organization_id={org} -F sub_system={sub} -F file=@photo.jpg</span> \{'\n'}
                {'       '}<span class="sh-url">{url}</span>
              </code></pre>
              <CopyIcon text={`curl ${key}-F organization_id=${org} -F sub_system=${sub} -F file=@photo.jpg ${url}`} what="command" />
            </div>
          </li>
          <li class="step last">
            <h2>Use it</h2>
            <p>The file appears here with its pictures in seven sizes, a link, and the request that reads it.</p>
          </li>
        </ol>
      </div>
    </Page>
  );
}
