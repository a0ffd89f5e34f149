/** The secrets that sign URLs: which signs, and until when older ones are accepted. */

import { call, type SigningSecretReply } from '../../api/call';
import { useLoad, type Loaded } from '../../data/load';
import { Button } from '../../parts/controls/button';
import { ask } from '../../parts/dialog';
import { Shown } from '../../parts/notes/loaded';
import { Panel } from '../../parts/panel';
import { State } from '../../parts/notes/state';
import { Table } from '../../parts/table';
import { Time } from '../../parts/values/time';
import { say } from '../../parts/notes/toast';

export function SigningSecrets() {
  const secrets = useLoad('signing', async (signal) => (await call('GET', '/admin/signing-secrets', { signal })).data);
  return (
    <div class="page-block">
      <Panel
        title="Signing secrets"
        note="Links that work without a key are signed with these."
        flush
        action={
          <Button size="small" icon="rotate-cw" onClick={() => rotate(secrets)}>
            Rotate
          </Button>
        }
      >
        <Shown of={secrets} rows={1} what="Signing secrets">
          {(list) =>
            list.length === 0 ? (
              <p class="panel-empty">No link was signed yet. The server makes a secret with the first one.</p>
            ) : (
            <Table
              label="Signing secrets"
              rows={list}
              rowKey={(secret) => secret.kid}
              columns={[
                { title: 'Name in the URL', phone: 'title', cell: (secret) => <code>{secret.kid}</code> },
                {
                  title: 'Use',
                  cell: (secret) =>
                    secret.signs ? <State kind="ok">Signs new links</State> : <State kind="wait">Accepts older links</State>,
                },
                {
                  title: 'Made',
                  phone: 'hidden',
                  cell: (secret) => (secret.created_at === null ? 'in the configuration' : <Time at={secret.created_at} />),
                },
                {
                  title: 'Accepted until',
                  cell: (secret) =>
                    secret.valid_until === null ? <span class="quiet-text">no end</span> : <Time at={secret.valid_until} />,
                },
              ]}
              buttons={(secret) =>
                    !secret.configured && (
                      <Button size="small" kind="danger" label={`Revoke ${secret.kid}`} onClick={() => revoke(secret, secrets)}>
                        Revoke
                      </Button>
                    )}
            />
            )
          }
        </Shown>
      </Panel>
    </div>
  );
}

async function rotate(secrets: Loaded<SigningSecretReply[]>): Promise<void> {
  const done = await ask({
    title: 'Sign with a new secret?',
    text: 'New links are signed with the new secret. Links that were shared before keep working until they end.',
    verb: 'Rotate',
    act: async () => secrets.set((await call('POST', '/admin/signing-secrets/rotate', { body: {} })).data),
  });
  if (done) say('A new secret signs links');
}

async function revoke(secret: SigningSecretReply, secrets: Loaded<SigningSecretReply[]>): Promise<void> {
  const done = await ask({
    title: `Revoke the signing secret ${secret.kid}?`,
    text: `Every link that was signed with this secret stops to work at once. ${
      secret.signs ? 'The server makes a new secret for new links.' : ''
    }`,
    verb: 'Revoke',
    danger: true,
    typed: secret.kid,
    act: async () =>
      secrets.set((await call('POST', '/admin/signing-secrets/{kid}/revoke', { path: { kid: secret.kid }, body: {} })).data),
  });
  if (done) say(`The signing secret ${secret.kid} was revoked`);
}
