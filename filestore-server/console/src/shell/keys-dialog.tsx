import { Button } from '../parts/controls/button';
import { Checkbox } from '../parts/controls/checkbox';
import { Dialog } from '../parts/dialog';
import { KEYS, keysShown, letters, useLetters } from './keys';

/** All keys, and the switch for single letters. */
export function KeysDialog() {
  if (!keysShown.value) return null;
  const close = () => (keysShown.value = false);
  return (
    <Dialog title="Keys" onClose={close} actions={<Button kind="primary" onClick={close}>Close</Button>}>
      <dl class="keys-list">
        {KEYS.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}
      </dl>
      <Checkbox label="Single letters act" hint="Switch this off if you speak to your computer." checked={letters.value} onChange={useLetters} />
    </Dialog>
  );
}
