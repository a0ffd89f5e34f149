// On an open server: what that means, and the way to close it.
import type { ComponentType } from 'preact';
import { useState } from 'preact/hooks';
import { organization } from '../data/place';
import { Button } from '../parts/controls/button';
import { Icon } from '../parts/icon';
import { sayError } from '../parts/notes/toast';
import { isOpen } from '../session';
import { usePhone } from './width';

interface DialogProps {
  onClose: () => void;
  onMade: () => void;
}

/** The bar is put away until the next visit, when the visitor has read it. */
let away = false;

export function OpenBar() {
  const [NewKey, setNewKey] = useState<ComponentType<DialogProps> | null>(null);
  const [hidden, setHidden] = useState(away);
  const phone = usePhone();
  if (!isOpen.value || hidden) return null;
  const open = async () => {
    try {
      const { NewKeyDialog } = await import('../pages/administration');
      setNewKey(() => NewKeyDialog as unknown as ComponentType<DialogProps>);
    } catch (error) {
      sayError('Not loaded', error);
    }
  };
  return (
    <div class="top-bar" role="region" aria-label="Open server">
      <Icon name="lock-open" />
      <p class="top-bar-text">
        {phone ? 'This server is open. The first key closes it.' : 'This server is open: every program on this machine can read, change and delete all files. The first key closes it.'}
      </p>
      <Button size="small" onClick={open}>Make the first key</Button>
      {organization.value !== null && (
        <button type="button" class="icon-button quiet" aria-label="Put the bar away" onClick={() => {
          away = true;
          setHidden(true);
        }}><Icon name="x" /></button>
      )}
      {NewKey && <NewKey onClose={() => setNewKey(null)} onMade={() => undefined} />}
    </div>
  );
}
